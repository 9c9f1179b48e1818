"""Answers to CALL binlog_relay.NAME(...), for which no server has a statement."""
