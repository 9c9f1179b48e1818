"""The place where the stream from a source begins, and the check that it is still the same source."""
