"""Row numbers, made without a Python object for each."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def row_numbers(count: int) -> Any:
    """Return 0 to count - 1, as int64."""
    return pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), count), start=pa.scalar(-1, pa.int64()))
