"""What each subcommand of binlog-relay does, apart from how it is typed."""
