"""The page at `/`, which only reads: files that a browser gets as they are."""
