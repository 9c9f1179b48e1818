"""`binlog-relay doctor`: checks before something breaks, and the next step for each result."""
