"""A frame as Parquet in a directory that executors write to, and this process reads from."""

from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from relay.audit.runner.output import OutputRefused


def write_frame(frame: DataFrame, path: Path) -> None:
    """Writes it, and looks whether all of it is there.

    Where the directory is not the same for all of a cluster, each executor writes to its own disk, and Spark calls that
    done. Raises: OutputRefused.
    """
    counted = Observation()
    observed = frame.observe(counted, F.count(F.lit(1)).alias("rows"))
    observed.write.mode("error").parquet(path.absolute().as_uri())
    rows = int(counted.get["rows"])
    found = sum(pq.read_metadata(part).num_rows for part in path.glob("*.parquet"))
    if found != rows:
        raise OutputRefused(
            f"executors wrote {rows} rows to {path.name}, and {found} of them are in {path.parent.parent} here: the directory is "
            "not the same for all of the cluster. Name one, with --out, that the driver and all executors mount at the same path."
        )
