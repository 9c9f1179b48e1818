"""Accepted gaps in the source's binlogs: what is known of each, and what it means for replicas."""
