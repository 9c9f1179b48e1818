"""The start of a stream, for a request and for the next generation alike."""
