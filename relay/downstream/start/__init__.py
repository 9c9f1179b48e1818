"""Where a stream begins, for a request and for the next generation alike."""
