"""Which transactions a replica by GTID is not sent, and what ends its stream."""
