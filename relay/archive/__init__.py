"""The archive: plain binlog files and what is derived from them."""
