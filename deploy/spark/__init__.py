"""The archive on a Spark cluster: the packed code for executors, and an example that is submitted with it."""
