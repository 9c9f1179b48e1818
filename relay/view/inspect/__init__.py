"""What is found out about a view, and done to it, from outside of the process that makes it."""
