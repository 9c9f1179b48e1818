"""The surroundings of the relay: real servers for demos and tests, the demo, sample configuration."""
