"""The archive on a Spark cluster: what executors need, packed, and an example that is submitted with it."""
