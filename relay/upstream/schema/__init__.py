"""The source's tables, asked of it and noticed in the stream: what `relay/schema_history` keeps."""
