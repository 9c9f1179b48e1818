"""The source's tables as they were from one position to the next, as a file beside the archive keeps them."""
