"""A feed as a command runs it: opened by its settings, followed until it is ended, and reopened after a fault."""

import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Final

import duckdb

from protocol.errors import ExitCode, RelayError
from relay.binlog_tables.plan.places import PositionGone
from relay.binlog_tables.plan.read_finding import FileLost, StorageSilent
from relay.binlog_tables.plan.series_files import NothingToRead
from relay.feed.archive_reading import ArchiveReading
from relay.feed.engine import FeedEngine, FeedLimits
from relay.feed.feed_batch import BatchSpace
from relay.feed.feed_config import FeedSection
from relay.feed.idle_feed import idle_place
from relay.feed.lake.lake_table import Lake
from relay.feed.rows.feed_stop import FeedStop
from relay.feed.settings.fed_tables import FedTables, NothingMatches
from relay.feed.settings.feed_settings import FeedSettings
from relay.feed.spool.spool_directory import SpoolDirectory
from relay.feed.tables_aside import TablesSetAside

_LEAST_PAUSE_S: Final = 1.0
_MOST_PAUSE_S: Final = 60.0
_MOST_TRIES: Final = 10
_WELL_S: Final = 600.0
"""A feed that ran so long was healthy: the next fault counts as the first one."""
_BACKTRACE: Final = re.compile(r"\n *+0: .*", re.DOTALL)
"""This is the backtrace that delta-rs appends to its errors."""
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m|[↳]\s*")
Say = Callable[[str], None]


class FeedFailed(RelayError):
    """The error that the lake or the archive could not be reached repeatedly. `str()` is for people."""

    exit_code = ExitCode.SOURCE_UNREACHABLE


def open_connection(section: FeedSection, spool: SpoolDirectory | None = None) -> duckdb.DuckDBPyConnection:
    """Open DuckDB, which computes net changes, with its share of the memory; the rest goes to the spool directory, if there is one."""
    config: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": f"{section.memory_mb // 2}MB",
        "threads": 2,
        "temp_directory": str(spool.path / "duckdb") if spool is not None else "",
    }
    return duckdb.connect(config=config)


def open_lake(section: FeedSection, connection: duckdb.DuckDBPyConnection) -> Lake:
    """Open the lake that the settings name. Raises: OSError."""
    if section.format == "iceberg":
        from relay.feed.lake.iceberg_lake import IcebergLake

        return IcebergLake(section.target, section.catalog, section.storage.options(), connection)
    from relay.feed.lake.delta_lake import DeltaLake

    return DeltaLake(section.target, section.storage.options(), connection)


def _choice(section: FeedSection) -> FedTables:
    return FedTables(tuple(section.tables), tuple(section.exclude))


def _settings(section: FeedSection) -> FeedSettings:
    return FeedSettings(
        tuple(section.modes),
        section.statement_changes == "every",
        section.assume_empty,
        tuple(section.no_cascades),
        tuple(section.trusted_images),
        section.on_trouble,
        section.invalid_dates,
    )


def _idle_at(section: FeedSection) -> str | None:
    """Return the archive's end as FILE:POSITION if the feed has nothing to do; None if it may have."""
    reading = ArchiveReading(section.archive)
    with closing(open_connection(section)) as connection:
        place = idle_place(reading, open_lake(section, connection), _choice(section), _settings(section))
    return reading.text(place) if place is not None else None


def open_engine(section: FeedSection, reading: ArchiveReading | None = None, *, applies: bool = True) -> FeedEngine:
    """Open the feed at the place up to which the lake is complete; its last call is `let_go`. Raises: FeedStop, OSError.

    With `applies` False no batch is read, and the feed has no spool directory.
    """
    with ExitStack() as opened:
        spool = SpoolDirectory(section.spool_directory or tempfile.gettempdir()) if applies else None
        if spool is not None:
            opened.callback(spool.close)
        connection = open_connection(section, spool)
        opened.callback(connection.close)
        above = section.spool_above_kb << 10 if section.spool_above_kb is not None else section.memory_mb << 17
        engine = FeedEngine(
            reading or ArchiveReading(section.archive),
            open_lake(section, connection),
            _choice(section),
            _settings(section),
            connection,
            section.start,
            FeedLimits(section.batch_mb << 20, BatchSpace(spool, above)),
            observes=not applies,
        )
        opened.pop_all()
        return engine


@contextmanager
def opened_engine(section: FeedSection, *, applies: bool = True) -> Iterator[FeedEngine]:
    """Yield the feed of `open_engine` and close it in any case."""
    engine = open_engine(section, applies=applies)
    try:
        yield engine
    finally:
        engine.let_go()


def run_feed(section: FeedSection, say: Say, *, once: bool, ended: threading.Event) -> None:
    """Feed until `ended` is set, or, with `once`, up to the current end of the archive.

    Raises: FeedStop; FeedFailed; NothingToRead; TablesSetAside and NothingMatches at the end of `once`.
    """
    pause, tries = _LEAST_PAUSE_S, 0
    began = time.monotonic()
    while True:
        try:
            began = time.monotonic()
            _follow(section, say, once, ended)
            return
        except (FeedStop, NothingToRead, TablesSetAside, NothingMatches):
            raise
        except PositionGone as error:
            raise FeedStop(
                "place_gone",
                "the place where it stood",
                str(error),
                "Keep binlogs longer, put the files back, or load all tables again: `binlog-relay feed snapshot --all`.",
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
    idle = _idle_at(section) if once else None
    if idle is not None:
        say(f"at {idle}: all tables have what the archive has, nothing was to be done")
        return
    with opened_engine(section) as engine:
        told = engine.reading.told
        say(f"feeding {section.archive} into {section.target} ({section.format}) from {told(engine.place)}")
        upto = engine.reading.newest() if once else None
        said = time.monotonic()
        is_whole = False
        try:
            while not ended.is_set():
                goes_on = engine.step(upto)
                for text in engine.aside.new_texts():
                    say(text)
                if goes_on:
                    if time.monotonic() - said > 10:
                        said = time.monotonic()
                        say(_so_far(engine))
                elif once:
                    break
                else:
                    if not is_whole and (unmatched := engine.unmatched()):
                        say(str(NothingMatches(unmatched)))
                    is_whole = True
                    if ended.wait(section.interval_s):
                        break
        except FeedStop as stop:
            engine.progress.note_stop(stop, engine.place)
            raise
        finally:
            if once or ended.is_set():
                engine.close()
        say(_so_far(engine))
        if once:
            engine.aside.check_none()
            if unmatched := engine.unmatched():
                raise NothingMatches(unmatched)


def _so_far(engine: FeedEngine) -> str:
    return f"at {engine.reading.told(engine.place)}: {engine.counts.rows} changes in {engine.counts.batches} batches"


def is_passing(error: Exception) -> bool:
    """Return whether an error may pass: the network, a disk, another writer."""
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
    """Return an error as a sentence, without its traceback."""
    text = _COLOURS.sub("", " ".join(_BACKTRACE.sub("", str(error)).split())).rstrip(".")
    return f"{': '.join((type(error).__name__, *getattr(error, '__notes__', ()), text[:300]))}."
