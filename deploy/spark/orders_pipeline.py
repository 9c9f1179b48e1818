"""A table that Spark's AUTO CDC keeps current: a pipeline for `spark-pipelines run` (Spark 4.3).

The example is shop.orders, with its key id. It needs a catalog whose tables can MERGE (Delta, Iceberg; their jars come with neither
pyspark nor this package), and stops without one: AUTOCDC_TARGET_DOES_NOT_SUPPORT_MERGE. The binlogs of the environment's BINLOG_ARCHIVE
begin with the table's CREATE; otherwise its earlier rows must be loaded first.

It needs a spark-pipeline.yml beside it:

    name: orders
    storage: file:///var/lib/orders-pipeline
    libraries: [{glob: {include: orders_pipeline.py}}]
"""

import os

from pyspark import pipelines
from pyspark.sql import DataFrame, SparkSession

from relay.spark.datasource import BinlogDataSource

_ABOUT_CHANGES = ["_change_type", "_commit_version", "_commit_timestamp", "_change_number", "_missing", "_finding"]

spark = SparkSession.active()
spark.dataSource.register(BinlogDataSource)


@pipelines.temporary_view
def order_changes() -> DataFrame:
    """Return the changes; the pipeline stops at the first unreadable one, and nothing is silently left out."""
    stream = spark.readStream.format("binlog").options(table="shop.orders", mode="failfast")
    return stream.load(os.environ["BINLOG_ARCHIVE"])


pipelines.create_streaming_table("orders")
pipelines.create_auto_cdc_flow(
    target="orders",
    source="order_changes",
    keys=["id"],
    sequence_by="struct(_commit_version, _change_number)",
    # A changed key is removed under its old name, and added a moment later under the new one
    apply_as_deletes="_change_type IN ('delete', 'update_preimage')",
    except_column_list=_ABOUT_CHANGES,
    stored_as_scd_type=1,
)
