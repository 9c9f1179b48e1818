"""`binlog-relay doctor`: what is asked before something breaks, and what to do about each answer."""
