"""`binlog-relay init`: the first relay.toml, and the statements to run at source and replica."""
