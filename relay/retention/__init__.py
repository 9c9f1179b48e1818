"""Which archived binlogs the relay removes by itself, when, and what keeps the others."""
