"""The command `binlog-relay audit NAME ARCHIVE --out DIR`: arguments become a job's options, its outcome a summary and an exit code."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from relay.archive.catalog.catalog import CatalogUnreadable
from relay.archive.storage.archive_errors import ArchiveError
from relay.commands.arguments import timestamp
from relay.commands.outcome import CommandFailed
from relay.view.rules.settings import TARGETS

if TYPE_CHECKING:
    from relay.audit.history.row_asked import RowAsked
    from relay.audit.runner.audit_outcome import Outcome
    from relay.audit.runner.audit_result import AuditOptions
    from relay.audit.runner.job import Job
    from relay.audit.runner.run_all import SeveralOutcomes

_LEAST_JAVA: Final = 17
_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
"""spark-submit sets this variable: the session is the cluster's, and its driver's Java runs already."""
_SHOWN_FINDINGS: Final = 20
_SHOWN_PLACES: Final = 3


@dataclass(frozen=True, slots=True)
class AuditRequest:
    """The arguments: see `binlog-relay audit --help`. `cores` None means all of them. `target` is that of --for; `table` and `key` name
    the row of `history`."""

    name: str
    archive: str
    out: Path
    since: str | None = None
    until: str | None = None
    tables: tuple[str, ...] = ()
    limit: int = 100
    replace: bool = False
    cores: int | None = None
    target: str | None = None
    table: str | None = None
    key: str | None = None


def audit(request: AuditRequest, *, as_json: bool = False) -> bool:
    """Run a job and return whether it found something. Raises: CommandFailed."""
    check_installed()
    from relay.audit.jobs import ALL
    from relay.audit.runner.output import check_output
    from relay.audit.runner.run_all import run_all, summary_of_all
    from relay.audit.runner.run_job import run_job
    from relay.audit.runner.spark_command import command_session
    from relay.audit.runner.spark_progress import spark_progress

    archive, out = request.archive, request.out
    jobs, options = asked_for(request)
    try:
        check_output(out, replace=request.replace)
        check_archive(archive)
        if sys.stderr.isatty():
            sys.stderr.write("Starting Spark; that takes some seconds.\n")
        with (
            command_session(request.cores, submitted=_SUBMITTED in os.environ) as spark,
            spark_progress(spark.sparkContext) as on_step,
        ):
            if request.name == ALL:
                done = run_all(spark, jobs, options, out, on_step, replace=request.replace)
            else:
                outcome = run_job(spark, jobs[0], options, out, on_step, replace=request.replace)
    except CatalogUnreadable as error:
        message = f"{archive}: {error} Stop the relay and run 'binlog-relay archive rebuild'."
        raise CommandFailed(message, error.exit_code) from None
    except ArchiveError as error:
        raise CommandFailed(f"{archive}: {error}", error.exit_code) from None
    except OSError as error:
        if os.environ.get("BINLOG_RELAY_DEBUG") == "1":
            raise
        message = f"The audit was not written: {error}. Correct this, and run it again."
        raise CommandFailed(message) from None
    if request.name == ALL:
        sys.stdout.write(json.dumps(summary_of_all(done)) + "\n" if as_json else text_of_all(done))
        return done.found
    _report(outcome, as_json)
    return outcome.found


def asked_for(request: AuditRequest) -> tuple[list["Job"], "AuditOptions"]:
    """Return the jobs and their options. Raises: CommandFailed."""
    from relay.audit.jobs import ALL, JOBS
    from relay.audit.runner.audit_result import AuditOptions
    from relay.audit.runner.run_job import load_job

    name = request.name
    if name != ALL and name not in JOBS:
        raise CommandFailed(f"there is no audit {name}. There are:\n{listed_jobs()}")
    jobs = [load_job(one) for one in (JOBS if name == ALL else (name,))]
    names = tuple(part.strip() for text in request.tables for part in text.split(",") if part.strip())
    if request.tables and not names:
        raise CommandFailed("--tables names no table: it takes shop.orders, shop.* or several with commas.")
    if names and not any(job.takes_tables for job in jobs):
        raise CommandFailed(f"{name} looks at all events: --tables cannot narrow it.")
    if request.target is not None and not any(job.takes_target for job in jobs):
        raise CommandFailed(f"{name} is not about a version of the replicas: it takes no --for.")
    if request.target is not None and request.target not in TARGETS:
        raise CommandFailed(f"--for names no version that a view can be for: it takes one of {', '.join(TARGETS)}.")
    since, until = _time("--since", request.since), _time("--until", request.until)
    if since and until and since >= until:
        raise CommandFailed("--since is not before --until: nothing lies between them.")
    row = _row(request) if any(job.takes_row for job in jobs) and name != ALL else None
    if row is None and (request.table is not None or request.key is not None):
        raise CommandFailed(f"{name} is not about one row: --table and --key are for history.")
    return jobs, AuditOptions(request.archive, since, until, names, request.limit, request.target or "", row)


def _row(request: AuditRequest) -> "RowAsked":
    from relay.audit.history.row_asked import parse_row

    if request.table is None or request.key is None:
        raise CommandFailed(f"{request.name} is about one row: --table shop.orders --key 42 name it.")
    return parse_row(request.table, request.key)


def listed_jobs() -> str:
    """Return a line for each audit."""
    from relay.audit.jobs import ALL, JOBS

    lines = JOBS | {
        ALL: "All of these but history; changes and hot-keys with --tables: one page over a report of each."
    }
    width = max(len(name) for name in lines)
    return "\n".join(f"  {name:<{width}}  {what}" for name, what in lines.items())


def check_installed() -> None:
    """Check that the optional packages are installed. Raises: CommandFailed, with what to install."""
    for module in ("pyspark", "pyarrow", "jinja2", "pygal"):
        try:
            __import__(module)
        except ImportError:
            message = f"Audits need {module}, which is not installed: pip install 'binlog-relay[audit]'"
            raise CommandFailed(message) from None
    if os.environ.get(_SUBMITTED):
        return
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None:
        raise CommandFailed(
            f"Audits run on Spark, which needs Java {_LEAST_JAVA} or later, and there is none: install a Java runtime "
            "(Debian: apt install openjdk-17-jre-headless) or set JAVA_HOME."
        )
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False).stderr
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CommandFailed(f"{java} cannot be run: {error}. Check JAVA_HOME.") from None
    match = re.search(r'version "(?:1\.)?(\d+)', told)
    if match and int(match[1]) < _LEAST_JAVA:
        message = f"{java} is Java {match[1]}; Spark needs {_LEAST_JAVA} or later. Install it, or set JAVA_HOME to one."
        raise CommandFailed(message)


def check_archive(archive: str) -> None:
    """Refuse at once what Spark would refuse seconds later. Raises: NothingToRead, ArchiveError, CommandFailed."""
    from relay.binlog_tables.plan.packed_store import store_of
    from relay.binlog_tables.plan.series_files import find_files

    try:
        find_files(store_of(archive), archive)
    except ImportError as error:
        raise CommandFailed(str(error)) from None
    except PermissionError as error:
        place = error.filename or archive
        message = f"{place} may not be read by this user. Run the command as the user that the relay runs as."
        raise CommandFailed(message) from None


def _time(option: str, text: str | None) -> datetime | None:
    if text is None:
        return None
    seconds = timestamp(option, text)
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        raise CommandFailed(f"{option} {text}: no binlog has such a time.") from None


def _report(outcome: "Outcome", as_json: bool) -> None:
    from relay.audit.runner.audit_outcome import summary

    if as_json:
        sys.stdout.write(json.dumps(summary(outcome)) + "\n")
        return
    sys.stdout.write(summary_text(outcome))


def text_of_all(done: "SeveralOutcomes") -> str:
    """Return the outcomes as lines for people: a verdict for each, and its kinds of errors and warnings."""
    from relay.report.text import count, shown

    lines = []
    for outcome in done.outcomes:
        lines.append(f"{outcome.job.title}: {outcome.result.verdict}")
        for finding in outcome.result.findings[:_SHOWN_FINDINGS]:
            if finding.severity != "note":
                lines.append(f"  {finding.severity}: {finding.title}: {count(finding.count)}")
    lines += [f"{name}: left out. {why}" for name, why in done.left_out.items()]
    lines += [done.verdict, f"Report: {done.report}"]
    return "".join(f"{shown(line)}\n" for line in lines)


def summary_text(outcome: "Outcome") -> str:
    """Return the outcome as lines for people."""
    from relay.report.text import count, shown

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
