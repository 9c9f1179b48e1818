"""The SQLite catalog: what the archive contains, and the ledger of what happened to it."""
