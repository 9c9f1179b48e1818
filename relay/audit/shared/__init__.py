"""What several audits read of an archive, read once for all of them: events counted, keys, engines of tables."""
