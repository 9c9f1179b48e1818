"""The archived binlogs that the relay removes by itself, the time when it does, and what keeps the others."""
