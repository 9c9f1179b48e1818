"""The GTIDs of the archived files, maintained while they grow."""
