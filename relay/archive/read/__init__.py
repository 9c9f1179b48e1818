"""The way out: open files, up to where they may be read, and which positions are sound."""
