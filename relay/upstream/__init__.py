"""The upstream side: a replica of the source."""
