"""What of a batch does not fit into memory: on disk while the batch is applied, in pieces."""
