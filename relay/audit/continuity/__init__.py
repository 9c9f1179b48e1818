"""The parts of the audit of continuity: files, ledger, GTIDs, times."""
