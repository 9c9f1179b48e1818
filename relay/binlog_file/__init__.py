"""The one reader of binlog files: head, runs of events, and the description of a broken file."""
