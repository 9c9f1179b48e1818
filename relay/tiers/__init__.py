"""Moves old binlogs: packed on the disk, then into a bucket; by rules, whole, and so that no crash loses one."""
