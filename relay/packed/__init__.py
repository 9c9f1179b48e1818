"""A binlog in compressed frames that can be read one by one, perhaps encrypted."""
