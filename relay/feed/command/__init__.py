"""`binlog-relay feed` and its subcommands: what is typed, and what is printed."""
