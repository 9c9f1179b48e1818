"""`binlog-relay audit NAME ARCHIVE --out DIR`: what is typed becomes a job's options, its outcome a summary and an exit code."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from relay.archive.catalog import CatalogUnreadable
from relay.archive.errors import ArchiveError
from relay.commands.arguments import timestamp
from relay.commands.outcome import ARCHIVE_DAMAGED, WRONG_USE, CommandFailed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from relay.audit.jobs.run import Outcome

_LEAST_JAVA: Final = 17
_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
"""Set by spark-submit: the session is the cluster's, and its driver's Java runs already."""
_SHUFFLE_PARTITIONS: Final = "16"
_CAUSE: Final = re.compile(r"\b\w*(Exception|Error): ")
_SHOWN_FINDINGS: Final = 20
_SHOWN_PLACES: Final = 3


def audit(
    name: str,
    archive: str,
    out: Path,
    *,
    since: str | None = None,
    until: str | None = None,
    tables: list[str] | None = None,
    limit: int = 100,
    replace: bool = False,
    cores: int | None = None,
    as_json: bool = False,
) -> bool:
    """Runs a job; whether it found something. Raises: CommandFailed."""
    check_installed()
    from relay.audit.files import NothingToRead
    from relay.audit.jobs import JOBS
    from relay.audit.jobs.job import AuditOptions
    from relay.audit.jobs.output import OutputRefused, check_output
    from relay.audit.jobs.progress import spark_progress
    from relay.audit.jobs.run import load_job, run_job

    if name not in JOBS:
        raise CommandFailed(f"there is no audit {name}. There are:\n{listed_jobs()}", WRONG_USE)
    job = load_job(name)
    names = tuple(part.strip() for text in tables or () for part in text.split(",") if part.strip())
    if names and not job.takes_tables:
        raise CommandFailed(f"{name} looks at all events: --tables cannot narrow it.", WRONG_USE)
    options = AuditOptions(archive, _time("--since", since), _time("--until", until), names, limit)
    if options.since and options.until and options.since >= options.until:
        raise CommandFailed("--since is not before --until: nothing lies between them.", WRONG_USE)
    try:
        check_output(out, replace=replace)
        check_archive(archive)
        with _session(cores) as spark, spark_progress(spark.sparkContext) as on_step:
            outcome = run_job(spark, job, options, out, on_step)
    except (NothingToRead, OutputRefused) as error:
        raise CommandFailed(str(error), WRONG_USE) from None
    except CatalogUnreadable as error:
        message = f"{archive}: {error} Stop the relay and run 'binlog-relay archive rebuild'."
        raise CommandFailed(message, ARCHIVE_DAMAGED) from None
    except ArchiveError as error:
        raise CommandFailed(f"{archive}: {error}", ARCHIVE_DAMAGED) from None
    _report(outcome, as_json)
    return outcome.found


def listed_jobs() -> str:
    """A line for each audit."""
    from relay.audit.jobs import JOBS

    width = max(len(name) for name in JOBS)
    return "\n".join(f"  {name:<{width}}  {what}" for name, what in JOBS.items())


def check_installed() -> None:
    """Says what to install where something is missing. Raises: CommandFailed."""
    for module in ("pyspark", "pyarrow"):
        try:
            __import__(module)
        except ImportError:
            message = f"Audits need {module}, which is not installed: pip install 'binlog-relay[audit]'"
            raise CommandFailed(message, WRONG_USE) from None
    if os.environ.get(_SUBMITTED):
        return
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None:
        raise CommandFailed(
            f"Audits run on Spark, which needs Java {_LEAST_JAVA} or later, and there is none: install a Java runtime "
            "(Debian: apt install openjdk-17-jre-headless) or set JAVA_HOME.",
            WRONG_USE,
        )
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False).stderr
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CommandFailed(f"{java} cannot be run: {error}. Check JAVA_HOME.", WRONG_USE) from None
    match = re.search(r'version "(?:1\.)?(\d+)', told)
    if match and int(match[1]) < _LEAST_JAVA:
        message = f"{java} is Java {match[1]}; Spark needs {_LEAST_JAVA} or later. Install it, or set JAVA_HOME to one."
        raise CommandFailed(message, WRONG_USE)


def check_archive(archive: str) -> None:
    """Refuses at once what Spark would refuse seconds later. Raises: NothingToRead, ArchiveError, CommandFailed."""
    from relay.audit.files import find_files
    from relay.audit.store import store_of

    try:
        find_files(store_of(archive), archive)
    except ImportError as error:
        raise CommandFailed(str(error), WRONG_USE) from None
    except PermissionError as error:
        place = error.filename or archive
        message = f"{place} may not be read by this user. Run the command as the user that the relay runs as."
        raise CommandFailed(message, WRONG_USE) from None


def _time(option: str, text: str | None) -> datetime | None:
    return None if text is None else datetime.fromtimestamp(timestamp(option, text), UTC)


@contextmanager
def _session(cores: int | None) -> Iterator["SparkSession"]:
    """The session of spark-submit, or one of this machine that ends with the command. Raises: CommandFailed."""
    from relay.audit.session import local_session, submitted_session

    if os.environ.get(_SUBMITTED):
        with _spark_failures(None):
            yield submitted_session()
        return
    # Workers are processes of their own, and import what this one imports.
    root = str(Path(__file__).resolve().parents[2])
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with tempfile.TemporaryFile() as log, _spark_failures(log):
        with _errors_to(log):
            session = local_session(cores or "*", sql_shuffle_partitions=_SHUFFLE_PARTITIONS)
            session.sparkContext.setLogLevel("FATAL")
        try:
            yield session
        finally:
            session.stop()


@contextmanager
def _errors_to(log: IO[bytes]) -> Iterator[None]:
    """Java writes greetings to stderr that nobody can switch off: the process started here has `log` instead."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        os.dup2(log.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


@contextmanager
def _spark_failures(log: IO[bytes] | None) -> Iterator[None]:
    """Spark's errors are pages long: its first line, and the last that Java wrote."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        if os.environ.get("BINLOG_RELAY_DEBUG") == "1":
            raise
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        told = next(
            (line for line in reversed(lines) if _CAUSE.search(line)), lines[0] if lines else type(error).__name__
        )
        tail = ""
        if log is not None:
            log.seek(0)
            written = log.read().decode("utf-8", "replace").splitlines()
            tail = f" Java's last line: {written[-1]}" if written else ""
        message = f"Spark did not finish, and nothing was written: {told}.{tail} (BINLOG_RELAY_DEBUG=1 shows all of it)"
        raise CommandFailed(message, WRONG_USE) from None


def _report(outcome: "Outcome", as_json: bool) -> None:
    from relay.audit.jobs.run import summary

    if as_json:
        sys.stdout.write(json.dumps(summary(outcome)) + "\n")
        return
    sys.stdout.write(told(outcome))


def told(outcome: "Outcome") -> str:
    """The outcome as lines for people."""
    from relay.audit.report.text import count, shown

    result = outcome.result
    lines = [f"{outcome.job.title}: {result.verdict}", outcome.complete]
    for finding in result.findings[:_SHOWN_FINDINGS]:
        lines.append(f"{finding.severity}: {finding.title}: {count(finding.count)}")
        for place in finding.places[:_SHOWN_PLACES]:
            lines.append(f"  {place}  {shown(place.text, 300)}".rstrip())
        if finding.count > _SHOWN_PLACES and finding.places:
            lines.append("  …")
    if len(result.findings) > _SHOWN_FINDINGS:
        lines.append(f"{len(result.findings) - _SHOWN_FINDINGS} more kinds of findings are in the report.")
    lines.append(f"Report: {outcome.report}")
    return "".join(f"{shown(line)}\n" for line in lines)
