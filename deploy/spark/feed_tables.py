"""The feed as a job: deploy/spark/submit deploy/spark/feed_tables.py FEED.toml CHECKPOINT [--once]. docs/FEED.md describes it."""

import sys

from pyspark.sql import SparkSession

from relay.spark.feed_query import feed_query, follow_query

if __name__ == "__main__":
    if len(sys.argv) not in (3, 4) or sys.argv[3:] not in ([], ["--once"]):
        sys.exit(__doc__)
    spark = SparkSession.builder.getOrCreate()
    follow_query(lambda: feed_query(spark, sys.argv[1], sys.argv[2], once=bool(sys.argv[3:])))
