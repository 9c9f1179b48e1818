"""The archive's bytes on their way to a replica's socket."""
