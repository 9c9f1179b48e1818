"""Delta and Iceberg tables that the feed keeps current from the archive, with their changes."""
