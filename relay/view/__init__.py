"""Views: each is a second set of binlogs that is built from the archive, for replicas that cannot read the source's own."""
