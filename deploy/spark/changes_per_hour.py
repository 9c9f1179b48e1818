"""The changes of each table, hour by hour, as Parquet: `spark-submit … changes_per_hour.py ARCHIVE OUT`.

This is an example of a custom job on the data source. The audits that come with the relay are submitted the same way: `spark-submit …
relay/spark_submit.py NAME ARCHIVE --out DIR`.
"""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from relay.spark.datasource import register


def main(archive: str, out: str) -> None:
    """Count and write. The output also contains what cannot be read: a row for each finding, with its file and position."""
    spark = SparkSession.builder.appName("binlog changes per hour").getOrCreate()
    register(spark)
    rows = spark.read.format("binlog").option("level", "rows").load(archive)
    changes = (
        rows.where("operation IS NOT NULL")
        .groupBy(F.date_trunc("hour", "time").alias("hour"), "schema", "table")
        .pivot("operation", ["insert", "update", "delete"])
        .count()
        .na.fill(0)
    )
    changes.write.mode("overwrite").parquet(f"{out}/changes")
    findings = spark.read.format("binlog").option("level", "findings").load(archive)
    findings.write.mode("overwrite").parquet(f"{out}/findings")
    spark.stop()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2])
