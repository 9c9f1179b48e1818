"""The path of the source's bytes from the socket to the archive."""
