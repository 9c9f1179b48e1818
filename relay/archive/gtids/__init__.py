"""Which GTIDs the archived files hold, kept while they grow."""
