"""The text of relay.toml: reading it, and the combinations that contradict each other."""
