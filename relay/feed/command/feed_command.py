"""The command `binlog-relay feed`: arguments become a feed, and its outcome becomes lines for people and an exit code."""

import contextlib
import fcntl
import signal
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from protocol.errors import ExitCode
from relay.commands.outcome import CommandFailed
from relay.disk.file_calls import write_named_text

if TYPE_CHECKING:
    from relay.feed.feed_config import FeedSection


def check_feed_installed() -> None:
    """Check that the optional packages of the feed are installed. Raises: CommandFailed."""
    try:
        import deltalake  # noqa: F401
        import duckdb  # noqa: F401
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise CommandFailed(f"{error.name} is not installed: pip install 'binlog-relay[feed]'") from None


def loaded_feed(path: Path) -> "FeedSection":
    """Return the settings of a feed.toml. Raises: CommandFailed; ConfigError."""
    check_feed_installed()
    from relay.feed.feed_config import load_feed_config

    section = load_feed_config(path)
    if section.format == "iceberg":
        _check_catalog(section.catalog or "", path)
    return section


def _check_catalog(catalog: str, path: Path) -> None:
    """Check that a catalog of Iceberg can be opened. The message leaves out the URL, which may contain a password. Raises: CommandFailed."""
    try:
        import pyiceberg.catalog.sql  # noqa: F401
        from sqlalchemy import make_url
        from sqlalchemy.exc import ArgumentError

        if "://" not in catalog:
            return
        try:
            make_url(catalog).get_dialect().import_dbapi()
        except (ValueError, ArgumentError):
            text = f'{path}: `catalog` is no URL that SQLAlchemy knows. Write it as "postgresql+psycopg2://USER@HOST/DATABASE".'
            raise CommandFailed(text) from None
    except ImportError as error:
        raise CommandFailed(
            f'{path}: {error.name} is not installed, which format = "iceberg" with this `catalog` needs.'
        ) from None


@dataclass(frozen=True, slots=True)
class SnapshotRequest:
    """The arguments of `feed snapshot`. `server` is the HOST:PORT of a server that has the source's data of `position` and does not change."""

    tables: tuple[str, ...] = ()
    all_tables: bool = False
    server: str | None = None
    position: str | None = None


@contextlib.contextmanager
def _told(again: str) -> Iterator[None]:
    """Turn errors of a feed, an archive or a lake into the command's message. Raises: CommandFailed."""
    from relay.feed.feed_run import is_passing, told

    try:
        yield
    except Exception as error:
        # Some errors of delta-rs are an OSError that names no file: those of a bucket that cannot be reached.
        if not is_passing(error) or (isinstance(error, OSError) and error.errno is not None):
            raise
        raise CommandFailed(f"The lake did not do it: {told(error)} {again}", ExitCode.SOURCE_UNREACHABLE) from None


@contextlib.contextmanager
def _locked(path: Path) -> Iterator["FeedSection"]:
    """Yield the settings while the file is locked against a second feed on this machine. Raises: CommandFailed."""
    section = loaded_feed(path)
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise CommandFailed(
                f"A feed with {path} runs already. End it first; what is not committed is done again."
            ) from None
        before = signal.signal(signal.SIGTERM, _end)
        try:
            with _told("What is committed stays: run it again."):
                yield section
        finally:
            signal.signal(signal.SIGTERM, before)


def _end(*_: object) -> None:
    """Raise SystemExit, so that everything open is closed, unlike when a signal ends the process."""
    raise SystemExit(128 + signal.SIGTERM)


def follow(path: Path, *, once: bool) -> None:
    """Run the feed. Raises: CommandFailed."""
    with _locked(path) as section:
        from relay.feed.command.relay_word import relay_word
        from relay.feed.feed_run import run_feed

        ended = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: ended.set())
        word = relay_word(section)
        if word.follows is False:
            say(str(word))
        run_feed(section, say, once=once, ended=ended)


def snapshot(path: Path, request: SnapshotRequest) -> None:
    """Load tables from the source while the feed runs. Raises: CommandFailed."""
    if not request.tables and not request.all_tables:
        raise CommandFailed("feed snapshot needs --table SCHEMA.TABLE or --all")
    if (request.server is None) != (request.position is None):
        raise CommandFailed("--server and --position go together: a server that has the data of that position")
    with _locked(path) as section:
        from relay.feed.feed_run import opened_engine
        from relay.feed.snapshot.snapshot_run import run_snapshots

        if section.source is None:
            raise CommandFailed(f"{path} has no [feed.source]: it names the server and an account with SELECT.")
        with opened_engine(section) as engine:
            run_snapshots(engine, section.source, request, say)


def rebuild(path: Path, tables: tuple[str, ...], place: str | None, *, as_json: bool) -> None:
    """Make tables and their changes from the archive again, beside those that are there, which they then replace. Raises: CommandFailed."""
    if not tables:
        raise CommandFailed("feed rebuild needs --table SCHEMA.TABLE")
    with _locked(path) as section:
        from dataclasses import asdict

        from relay.feed.feed_run import opened_engine
        from relay.feed.rebuild.table_rebuild import run_rebuilds

        with opened_engine(section) as engine:
            for one in run_rebuilds(engine, tables, place, say):
                if as_json:
                    print_json(asdict(one))
                    continue
                made = [
                    f"{count} {kind}"
                    for count, kind in ((one.rows, "rows"), (one.changes, "changes"))
                    if count is not None
                ]
                sys.stdout.write(
                    f"{one.table}: rebuilt from {one.start} to {one.place}: {', '.join(made)} in {one.seconds} s\n"
                )


def status(path: Path, *, as_json: bool) -> bool:
    """Print how far the archive is, and each table's state; return whether something is not as it must be. Raises: CommandFailed."""
    section = loaded_feed(path)
    from relay.feed.command.feed_report import archive_end, feed_report
    from relay.feed.command.relay_word import relay_word
    from relay.feed.feed_run import opened_engine
    from relay.feed.settings.fed_tables import NothingMatches

    word = relay_word(section)
    with _told("Nothing was changed: run it again."), opened_engine(section, applies=False) as engine:
        report = feed_report(engine, word)
        unmatched = engine.unmatched()
        end = archive_end(engine)
    findings = [str(word)] if word.follows is False else []
    findings += [str(NothingMatches(unmatched))] if unmatched else []
    if as_json:
        for text in findings:
            print_json({"finding": text})
    else:
        sys.stdout.write(f"archive: ends at {end}. {word}\n")
        sys.stdout.write("".join(f"{text}\n" for text in findings if text != str(word)))
    for one in report:
        if as_json:
            print_json(one)
            continue
        aside = one["aside"]
        if aside is not None:
            sys.stdout.write(
                f"{one['table']}: {one['state']} at {aside['place']}, {aside['name']}: {aside['text']} {aside['advice']}\n"
            )
            continue
        stale = f"; stale from {one['stale_from']}: {one['stale_reason']}" if one["stale_from"] else ""
        nulls = f"; {one['null_dates']} invalid dates were written as NULL" if one["null_dates"] else ""
        sys.stdout.write(
            f"{one['table']}: {one['state']} at {one['place']}, behind the archive {one['behind_bytes']} bytes, {one['behind_s']} s{stale}{nulls}\n"
        )
    return bool(findings) or any(one["state"] not in ("current", "changes only") for one in report)


def report(path: Path, out: Path, days: int) -> None:
    """Write the page of `feed report`. Raises: CommandFailed."""
    section = loaded_feed(path)
    try:
        import jinja2  # noqa: F401
        import pygal  # noqa: F401
    except ImportError as error:
        raise CommandFailed(f"{error.name} is not installed: pip install 'binlog-relay[feed]'") from None
    from relay.feed.command.feed_page import feed_page
    from relay.feed.command.relay_word import relay_word
    from relay.feed.feed_run import opened_engine

    word = relay_word(section)
    with _told("Nothing was written: run it again."), opened_engine(section, applies=False) as engine:
        page = feed_page(engine, section, str(path), days, word)
    try:
        written = out.with_name(f".{out.name}.new")
        write_named_text(written, page)
        written.replace(out)
    except OSError as error:
        raise CommandFailed(f"The report was not written: {error}.") from None
    sys.stdout.write(f"{out}\n")


def verify(path: Path, tables: tuple[str, ...], *, as_json: bool) -> bool:
    """Compare tables with the source and return whether something differs. Raises: CommandFailed."""
    with _locked(path) as section:
        from dataclasses import asdict

        from relay.feed.feed_run import opened_engine
        from relay.feed.rows.feed_stop import FeedStop
        from relay.feed.snapshot.source_rows import SourceRows
        from relay.feed.snapshot.table_comparison import TableComparison
        from relay.feed.snapshot.table_snapshot import check_source

        if section.source is None:
            raise CommandFailed(f"{path} has no [feed.source]: it names the server and an account with SELECT.")
        found = False
        with opened_engine(section) as engine, SourceRows(section.source) as source:
            check_source(engine, source)
            known = {table.name for table in engine.tables.values()}
            for name in tables:
                if name not in known:
                    raise FeedStop(
                        "table_not_fed",
                        name,
                        "The lake has no such table.",
                        "Give SCHEMA.TABLE as `feed status` has it.",
                    )
            for key, table in sorted(engine.tables.items()):
                if tables and table.name not in tables:
                    continue
                if key in engine.aside:
                    say(f"{table.name}: not compared. It is set aside: `binlog-relay feed status` says why.")
                    found = True
                    continue
                if table.current is None:
                    if table.may_have_current:
                        say(f"{table.name}: not compared. It waits for a snapshot.")
                    found = found or bool(tables)
                    continue
                try:
                    outcome = TableComparison(engine, source, key, section.source.chunk_rows).run()
                except FeedStop as stop:
                    if stop.name not in ("no_key", "not_kept") and key not in engine.aside:
                        raise
                    say(f"{table.name}: not compared. {stop}")
                    found = found or bool(tables) or stop.name != "no_key"
                    continue
                found = found or not outcome.same
                if as_json:
                    print_json({**asdict(outcome), "same": outcome.same})
                    continue
                verdict = (
                    "same"
                    if outcome.same
                    else (
                        f"DIFFERENT: {outcome.different} rows differ, {outcome.missing} are missing, {outcome.extra} too many"
                    )
                )
                sys.stdout.write(
                    f"{outcome.table}: {verdict}; {outcome.rows} rows in {len(outcome.ranges)} ranges compared, "
                    f"{outcome.skipped} changed meanwhile\n"
                )
                for line in outcome.shown:
                    sys.stdout.write(f"  {line}\n")
            engine.close()
        return found


def compact(path: Path, *, target_mb: int, keep_hours: int, changes_days: int | None, as_json: bool) -> None:
    """Merge small files into larger ones, and remove files of old versions and old changes. Raises: CommandFailed."""
    with _locked(path) as section:
        from relay.feed.feed_run import opened_engine
        from relay.feed.rebuild.feed_beside import remove_all
        from relay.feed.renamed_tables import RENAMING

        with opened_engine(section) as engine:
            for _key, table in sorted(engine.tables.items()):
                for kind, lake in (("current", table.current), ("changes", table.history)):
                    if lake is None:
                        continue
                    if lake.properties.get(RENAMING):
                        say(
                            f"{table.name}: left as it is, a RENAME is not done in the lake. Run the feed, and this again."
                        )
                        continue
                    if kind == "changes" and changes_days is not None:
                        lake.forget("time", first_kept_day(changes_days))
                    done = {**lake.compact(target_mb << 20), **lake.expire(keep_hours)}
                    kept = {name: value for name, value in done.items() if isinstance(value, int)}
                    if as_json:
                        print_json({"table": table.name, "kind": kind, **kept})
                    else:
                        sys.stdout.write(
                            f"{table.name} {kind}: {', '.join(f'{name} {value}' for name, value in kept.items())}\n"
                        )
            for key in remove_all(engine, sorted(engine.tables)):
                say(f"{'.'.join(key)}: what a rebuild had made that was ended is removed")
            gone = engine.progress.upkeep(keep_hours)
            if as_json:
                told = {name: value for name, value in gone.items() if isinstance(value, int)}
                print_json({"table": "_feed", "kind": "state", **told})


def first_kept_day(days: int) -> datetime:
    """Return the beginning, in UTC, of the first of so many days, of which today is the last."""
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return today - timedelta(days=days - 1)


def say(text: str) -> None:
    """Print a line for the operator to stderr."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def print_json(facts: Any) -> None:
    """Print one object per line."""
    import json

    sys.stdout.write(json.dumps(facts, ensure_ascii=False, default=str) + "\n")
