"""The feed: tables kept current in Delta and Iceberg."""
