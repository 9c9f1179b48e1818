"""The command line: its commands and their options; the work of each is elsewhere."""
