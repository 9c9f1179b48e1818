"""The command `binlog-relay feed` and its subcommands: arguments and output."""
