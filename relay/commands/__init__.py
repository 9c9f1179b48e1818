"""The work of each subcommand of binlog-relay, apart from its options."""
