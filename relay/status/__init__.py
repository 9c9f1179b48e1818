"""`binlog-relay status`: one look at a relay, from its files and, while it runs, from itself."""
