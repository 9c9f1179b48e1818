"""A feed as a command runs it: opened by its settings, followed until somebody ends it, opened again behind a fault."""

import os
import re
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Final

import duckdb

from relay.audit.plan.places import PositionGone
from relay.audit.plan.read_finding import FileLost, StorageSilent
from relay.audit.plan.series_files import NothingToRead
from relay.feed.archive_reading import ArchiveReading
from relay.feed.engine import FedTables, FeedEngine
from relay.feed.fed_table import FeedSettings
from relay.feed.feed_config import FeedSection
from relay.feed.lake.lake_table import Lake
from relay.feed.rows.feed_stop import FeedStop

_LEAST_PAUSE_S: Final = 1.0
_MOST_PAUSE_S: Final = 60.0
_MOST_TRIES: Final = 10
_WELL_S: Final = 600.0
"""A feed that ran so long was well: the next fault is the first one again."""
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m|[↳]\s*")
Say = Callable[[str], None]


class FeedFailed(Exception):
    """The lake or the archive could not be reached, again and again. `str()` is for people."""


def open_connection(section: FeedSection) -> duckdb.DuckDBPyConnection:
    """DuckDB, which computes net changes, with its share of the memory; what does not fit goes to its temporary directory."""
    spilled = f"{tempfile.gettempdir()}/binlog-relay-feed-{os.getpid()}"
    return duckdb.connect(
        config={"memory_limit": f"{section.memory_mb // 2}MB", "threads": 2, "temp_directory": spilled}
    )


def open_lake(section: FeedSection, connection: duckdb.DuckDBPyConnection) -> Lake:
    """The lake that the settings name. Raises: OSError."""
    if section.format == "iceberg":
        from relay.feed.lake.iceberg_lake import IcebergLake

        return IcebergLake(section.target, section.catalog, section.storage.options(), connection)
    from relay.feed.lake.delta_lake import DeltaLake

    return DeltaLake(section.target, section.storage.options(), connection)


def open_engine(section: FeedSection, reading: ArchiveReading | None = None) -> FeedEngine:
    """The feed, at the place up to which the lake has everything. Raises: FeedStop, OSError."""
    connection = open_connection(section)
    return FeedEngine(
        reading or ArchiveReading(section.archive),
        open_lake(section, connection),
        FedTables(tuple(section.tables), tuple(section.exclude)),
        FeedSettings(
            tuple(section.modes), section.statement_changes == "every", section.assume_empty, tuple(section.no_cascades)
        ),
        connection,
        section.start,
        section.batch_mb << 20,
    )


def run_feed(section: FeedSection, say: Say, *, once: bool, ended: threading.Event) -> None:
    """Feeds until `ended` is set, or, with `once`, up to what is there now.

    Raises: FeedStop; FeedFailed; NothingToRead.
    """
    pause, tries = _LEAST_PAUSE_S, 0
    began = time.monotonic()
    while True:
        try:
            began = time.monotonic()
            _follow(section, say, once, ended)
            return
        except (FeedStop, NothingToRead):
            raise
        except PositionGone as error:
            raise FeedStop(
                "place_gone",
                "the place where it stood",
                str(error),
                "Keep binlogs longer, put the files back, or load all tables anew: `binlog-relay feed snapshot --all`.",
            ) from None
        except Exception as error:
            if not is_passing(error):
                raise
            if time.monotonic() - began > _WELL_S:
                pause, tries = _LEAST_PAUSE_S, 0
            tries += 1
            if tries >= _MOST_TRIES:
                raise FeedFailed(f"Gave up after {tries} tries: {told(error)}") from None
            say(f"{told(error)} What is not committed is done again in {pause:.0f} s.")
            if ended.wait(pause):
                return
            pause = min(pause * 2, _MOST_PAUSE_S)


def _follow(section: FeedSection, say: Say, once: bool, ended: threading.Event) -> None:
    engine = open_engine(section)
    say(f"feeding {section.archive} into {section.target} ({section.format}) from {engine.reading.told(engine.place)}")
    upto = engine.reading.newest() if once else None
    said = time.monotonic()
    try:
        while not ended.is_set():
            if engine.step(upto):
                if time.monotonic() - said > 10:
                    said = time.monotonic()
                    say(
                        f"at {engine.reading.told(engine.place)}: {engine.counts.rows} changes in {engine.counts.batches} batches"
                    )
            elif once or ended.wait(section.interval_s):
                break
    except FeedStop as stop:
        engine.progress.note_stop(stop, engine.place)
        raise
    finally:
        try:
            if once or ended.is_set():
                engine.close()
        finally:
            engine.let_go()
    say(f"at {engine.reading.told(engine.place)}: {engine.counts.rows} changes in {engine.counts.batches} batches")


def is_passing(error: Exception) -> bool:
    """Whether it may be better in a moment: the network, a disk, another writer."""
    name = type(error).__module__.partition(".")[0]
    return isinstance(error, OSError | FileLost | StorageSilent) or name in (
        "deltalake",
        "_internal",
        "pyiceberg",
        "botocore",
        "s3fs",
        "sqlalchemy",
    )


def told(error: Exception) -> str:
    """An error in a sentence, without its traceback."""
    text = _COLOURS.sub("", " ".join(str(error).split()))
    return f"{type(error).__name__}: {text[:300]}."
