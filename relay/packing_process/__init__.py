"""A sealed binlog is packed, and read back, by a process of its own that gives way to all else."""
