"""Binlogs as tables: rows and typed columns in Arrow, for Spark, the feed, exports and audits. It does not import pyspark."""
