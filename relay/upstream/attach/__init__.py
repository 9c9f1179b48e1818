"""Where the stream from a source begins, and whether this is still the same source."""
