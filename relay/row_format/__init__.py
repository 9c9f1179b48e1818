"""Sources that log statements: what that means for views, and the replica of their own version that logs rows."""
