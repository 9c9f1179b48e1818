"""Views: a second set of binlogs, made from the archive, for replicas that cannot read the source's own."""
