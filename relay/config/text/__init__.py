"""relay.toml as it is written: read, and what in it does not go together."""
