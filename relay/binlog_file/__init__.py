"""The one reader of binlog files: head, runs of events, and what a broken file is told as."""
