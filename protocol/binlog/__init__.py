"""Readable decoders of binlog events, used off the hot path."""
