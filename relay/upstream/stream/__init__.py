"""The source's bytes on their way from the socket to the archive."""
