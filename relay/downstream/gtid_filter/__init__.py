"""The transactions that a GTID replica is not sent, and the end of its stream."""
