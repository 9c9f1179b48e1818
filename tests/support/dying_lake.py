"""A feed that dies right after one of its commits."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from relay.feed.lake.delta_lake import DeltaLake, DeltaLakeTable
from relay.feed.lake.iceberg_lake import IcebergLake, IcebergLakeTable

_COMMITS = ("append", "merge", "merge_spooled", "replace", "clear", "rebuild", "advance", "evolve", "set_properties")


class Died(BaseException):
    """The error after which nothing more is done: as with kill -9."""


@contextmanager
def dying_behind(count: int) -> Iterator[list[str]]:
    """Make all lakes of the process raise Died after the `count`-th commit. Yields what was committed, in order."""
    done: list[str] = []

    def mortal(name: str, commit: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any, **named: Any) -> Any:
            if len(done) >= count:
                raise Died
            outcome = commit(*given, **named)
            done.append(name)
            if len(done) >= count:
                raise Died
            return outcome

        return run

    with pytest.MonkeyPatch.context() as patch:
        for kind in (DeltaLakeTable, IcebergLakeTable):
            for name in _COMMITS:
                patch.setattr(kind, name, mortal(name, getattr(kind, name)))
        for lake in (DeltaLake, IcebergLake):
            patch.setattr(lake, "create", mortal("create", lake.create))
        yield done
