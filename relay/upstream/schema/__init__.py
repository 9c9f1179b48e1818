"""The source's tables, queried from it and noticed in the stream, for `relay/schema_history`."""
