"""`binlog-relay doctor`: runs all checks, prints a line for each result."""

import asyncio
import json
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import structlog
from pydantic import ValidationError

from protocol.errors import ExitCode
from relay.commands.outcome import CommandFailed
from relay.config import Config, ServerSecurity, ServerSource, SslMode
from relay.config.text.problems import Findings
from relay.config.text.tls_files import check_server_files
from relay.config.text.toml_text import SERVER_FILES
from relay.doctor.doctor_line import DoctorLine, is_worse
from relay.doctor.examination import examine


def doctor(config: Config, replicas: Sequence[str], *, limit_s: float, strict: bool, as_json: bool) -> int:
    """Print the report; return the exit code. replicas: as `replica_to_ask` reads them. Raises: CommandFailed."""
    asked = [replica_to_ask(text) for text in replicas]
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


def replica_to_ask(text: str) -> ServerSource:
    """Parse HOST[:PORT],USER,PASSWORD-FILE[,KEY=VALUE ...]: a key is one of `ServerSecurity`. Raises: CommandFailed."""
    parts = text.split(",")
    keys = dict(part.partition("=")[::2] for part in parts[3:])
    parts = parts[:3]
    host, _, port = (
        parts[0].rpartition(":") if ":" in parts[0] and not parts[0].endswith("]") else (parts[0], "", "3306")
    )
    host = host.removeprefix("[").removesuffix("]")
    if len(parts) != 3 or not all(parts) or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise CommandFailed("--replica: write HOST:PORT,USER,FILE, where FILE holds the password.")
    wrong = keys.keys() - ServerSecurity.model_fields.keys()
    findings = Findings()
    check_server_files("--replica", keys, findings)
    if wrong or findings.problems:
        why = findings.problems[0] if findings.problems else f"there is no {', '.join(sorted(wrong))}"
        known = ", ".join(ServerSecurity.model_fields)
        raise CommandFailed(f"--replica: {why}. Behind FILE there may be {known}, each as ,KEY=VALUE.")
    given = {key: Path(value) if key in SERVER_FILES else value for key, value in keys.items()}
    try:
        return ServerSource.model_validate(
            {
                "host": host,
                "port": int(port),
                "user": parts[1],
                "password_file": Path(parts[2]),
                "server_id": 1,
                **given,
            }
        )
    except ValidationError:
        words = ", ".join(get_args(SslMode))
        raise CommandFailed(f"--replica: ssl_mode is one of {words}.") from None
