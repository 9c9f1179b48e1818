"""A query that Spark stops because a Python came too late is started again; any other error ends it."""

from collections.abc import Callable
from typing import Any, cast

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install '.[audit]'")
pytest.importorskip("duckdb", reason="duckdb is not installed: pip install '.[feed]'")

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from relay.spark.feed_query import follow_query

LATE = "[STREAM_FAILED] Query terminated with exception: Python worker failed to connect back. SQLSTATE: XXKST"


class EndingQuery:
    """Ends with an error, or well. `recentProgress`: of the batches before it."""

    def __init__(self, error: str = "", *, batches: int = 0) -> None:
        self.recentProgress = [{}] * batches
        self._error = error

    def awaitTermination(self) -> None:
        if self._error:
            raise StreamingQueryException(self._error)


def started(*queries: EndingQuery) -> tuple[Callable[[], StreamingQuery], list[Any]]:
    left = list(queries)
    return lambda: cast(StreamingQuery, left.pop(0)), left


def test_a_query_whose_python_came_too_late_is_started_again_and_that_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    start, left = started(EndingQuery(LATE), EndingQuery(LATE), EndingQuery())
    follow_query(start)
    assert left == []
    assert capsys.readouterr().err.count("is started again from its checkpoint") == 2


def test_after_five_starts_in_a_row_without_a_batch_it_ends() -> None:
    start, left = started(
        *[EndingQuery(LATE)] * 4, EndingQuery(LATE, batches=3), *[EndingQuery(LATE)] * 5, EndingQuery()
    )
    with pytest.raises(StreamingQueryException, match="connect back"):
        follow_query(start)
    assert len(left) == 1


def test_another_error_ends_it_at_once() -> None:
    start, left = started(EndingQuery("[STREAM_FAILED] FeedStop: value_has_no_type"), EndingQuery())
    with pytest.raises(StreamingQueryException, match="value_has_no_type"):
        follow_query(start)
    assert len(left) == 1
