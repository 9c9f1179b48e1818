"""Binlogs for Spark: a data source, and audits on it. The only package that knows pyspark and pyarrow."""
