"""`binlog-relay doctor`: runs all checks, prints a line for each result."""

import asyncio
import json
import logging
import sys
from collections.abc import Sequence

import structlog

from protocol.errors import ExitCode
from relay.commands.named_server import named_server
from relay.config import Config
from relay.doctor.doctor_line import DoctorLine, is_worse
from relay.doctor.examination import examine


def doctor(config: Config, replicas: Sequence[str], *, limit_s: float, strict: bool, as_json: bool) -> int:
    """Print the report; return the exit code. replicas: as `named_server` reads them. Raises: CommandFailed."""
    asked = [named_server("--replica", text) for text in replicas]
    # The lines contain what the relay would log of it.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    lines = asyncio.run(examine(config, asked, limit_s))
    for line in lines:
        sys.stdout.write((json.dumps(line.record()) if as_json else shown_line(line)) + "\n")
    if not as_json:
        sys.stdout.write(summary(lines) + "\n")
    return ExitCode.FINDINGS if is_worse(lines, strict=strict) else ExitCode.FINE


def shown_line(line: DoctorLine) -> str:
    """Return level, about, check and what on one line; the cure on the next."""
    text = f"{line.level:<8} {line.about}: {line.check}: {line.what}"
    return f"{text}\n{'':9}-> {line.cure}" if line.cure else text


def summary(lines: Sequence[DoctorLine]) -> str:
    """Return the number of lines of each level."""
    count = {level: sum(line.level == level for line in lines) for level in ("problem", "warning", "unknown", "ok")}
    problems = f"{count['problem']} problem{'s' if count['problem'] != 1 else ''}"
    warnings = f"{count['warning']} warning{'s' if count['warning'] != 1 else ''}"
    unknown = f", {count['unknown']} could not be asked" if count["unknown"] else ""
    return f"{problems}, {warnings}, {count['ok']} ok{unknown}."
