"""The SQLite catalog: what the archive holds, and the ledger of what happened to it."""
