"""Tables kept current, and their changes, in Delta and Iceberg, out of the archive."""
