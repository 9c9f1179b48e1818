"""Answers to CALL binlog_relay.NAME(...): what no server has a statement for."""
