"""The part of a batch that does not fit into memory: on disk while the batch is applied, in pieces."""
