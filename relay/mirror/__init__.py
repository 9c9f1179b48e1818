"""A bucket as the archive's second copy, and an archive made again from the bucket alone."""
