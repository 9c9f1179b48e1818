"""A bucket as the archive's second copy, and an archive rebuilt from the bucket alone."""
