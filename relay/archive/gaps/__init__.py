"""Gaps in the source's binlogs that somebody accepted: what is known of each, and what it means for replicas."""
