"""Checksums of the relay's own, for each block of archived files whose events have none."""
