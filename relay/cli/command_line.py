"""The command line: `binlog-relay`.

Exit codes: 0 fine, 1 findings, 2 wrong use or configuration, or a file that the system refuses, 3 source unreachable or
refused, 4 archive damaged, 70 a bug. What a command needs is imported inside it, so that `--help` and `run` start at once.
"""

import contextlib
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from protocol.errors import ExitCode, RelayError
from protocol.printable import printable
from relay.cli import archive_commands, audit_commands, binlog_commands, feed_commands, relay_commands, view_commands
from relay.commands.outcome import exit_code_of

app = typer.Typer(
    name="binlog-relay",
    help="Relays, checks, archives and serves MySQL and MariaDB binary logs.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(relay_commands.commands)
app.add_typer(binlog_commands.commands)
app.add_typer(audit_commands.commands)
app.add_typer(archive_commands.commands, name="archive")
app.add_typer(view_commands.commands, name="view")
app.add_typer(feed_commands.commands, name="feed")

_MOST_LINE = 64 << 10
_COMPLETE = "_BINLOG_RELAY_COMPLETE"
"""Set by the completions of shells, deploy/completions: the answer is the list of possible continuations."""


def main() -> None:
    """Run the command line and end the process. A traceback is shown only if BINLOG_RELAY_DEBUG=1 is set."""
    if sys.stdout is None:
        # Started with a closed output (`>&-`): it has no reader.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - for as long as the process lives
    try:
        _run()
    except SystemExit as ended:
        # The reader (head, less) has seen enough: typer ends with 1, which would mean findings here.
        if isinstance(ended.__context__, BrokenPipeError):
            sys.exit(0)
        raise
    except Exception as error:
        code = exit_code_of(error)
        if _debugging() and (code is ExitCode.BUG or not isinstance(error, RelayError)):
            raise
        print(_shown(_bug_report(error) if code is ExitCode.BUG else _reason(error)), file=sys.stderr)  # noqa: T201
        with contextlib.suppress(OSError):
            _write_out()
        sys.exit(code)


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and not isinstance(error, RelayError):
        unnamed = "" if error.filename else " It names no file: look first at where the output goes."
        return f"The system refused: {error}.{unnamed}"
    return str(error)


def _shown(message: str) -> str:
    """Return the message as a terminal may show it: it contains texts of servers, files and archives."""
    return "\n".join(printable(line.replace("\t", "    "), _MOST_LINE) for line in message.split("\n"))


def _run() -> None:
    """Run the command, and write all of its output: an error of that must not come up after the end."""
    if _COMPLETE in os.environ:
        from typer.completion import completion_init  # type: ignore[attr-defined]

        completion_init()
    try:
        app()
    except SystemExit as ended:
        if not isinstance(ended.__context__, BrokenPipeError):
            _write_out()
        raise


def _write_out() -> None:
    """Write the output. Raises: OSError; SystemExit, if it has no reader any more."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
        sys.exit(0)
    except OSError:
        _drop_output()
        raise


def _drop_output() -> None:
    """Drop the unwritten output: Python would try it once more as it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _debugging() -> bool:
    return os.environ.get("BINLOG_RELAY_DEBUG") == "1"


def _bug_report(error: Exception) -> str:
    place = "an unknown place"
    trace = error.__traceback__
    while trace is not None:
        place = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return (
        f"Internal error: {type(error).__name__} at {place}: {error}. This is a bug in binlog-relay: please report it to "
        "its maintainers with this line and the command (BINLOG_RELAY_DEBUG=1 adds a traceback)."
    )


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"binlog-relay {version('binlog-relay')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Relays, checks, archives and serves MySQL and MariaDB binary logs."""


if __name__ == "__main__":
    main()
