"""The decoder of parts of files into Arrow batches of the levels' columns."""
