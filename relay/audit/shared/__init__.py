"""Facts about an archive that several audits use, read once for all of them: counted events, keys, engines of tables."""
