"""Binlogs for Spark: the data source `binlog`, and the feed as a query of Structured Streaming."""
