"""`binlog-relay compare`: options become a comparison, and its findings the exit code."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from protocol.errors import ExitCode
from relay.commands.named_server import named_server
from relay.commands.progress import bytes_progress
from relay.compare.compare_state import CompareState
from relay.compare.comparison import Request, ServerComparison
from relay.compare.rows.differences import Differences
from relay.compare.rows.repair_script import RepairScript
from relay.compare.servers.compared_servers import both_servers
from relay.config import Config


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """The options of the command line. `source` and `replica` are as `named_server` reads them."""

    replica: str
    source: str | None = None
    view: str | None = None
    script: Path | None = None
    state: Path | None = None
    as_json: bool = False
    request: Request = field(default_factory=Request)


def compare(config: Config, options: CompareOptions) -> ExitCode:
    """Compare and print; return 0 if all is equal, 1 if something differs, 3 if that could not be told. Raises: RelayError; OSError."""
    target = named_server("--replica", options.replica)
    source = None if options.source is None else named_server("--source", options.source)
    findings = Differences(as_json=options.as_json)
    with (
        _ended_by_signals(),
        both_servers(config, source, target, options.view, options.request.limits.wait_s) as servers,
    ):
        state = CompareState.opened(options.state, servers.identities)
        findings.different, findings.unknown = state.different, state.unknown
        with RepairScript(options.script, goes_on=state.goes_on) as script:
            comparison = ServerComparison(servers, options.request, findings, state, script)
            with bytes_progress("compare", comparison.find_tables()) as told:
                try:
                    comparison.run(told or _nothing)
                except BaseException:
                    comparison.save()
                    raise
            state.forget()
    return {"equal": ExitCode.FINE, "different": ExitCode.FINDINGS, "unknown": ExitCode.SOURCE_UNREACHABLE}[
        findings.verdict
    ]


def _nothing(_size: int) -> None:
    pass


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let SIGTERM end the command as Ctrl-C does, so that the state is written."""

    def end(*_: object) -> None:
        raise SystemExit(128 + signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
