"""Parts of files become Arrow batches of the levels' columns."""
