"""The source's tables at each position, as a file beside the archive stores them."""
