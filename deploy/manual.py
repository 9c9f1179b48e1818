"""The manual page and the completions of shells, generated from the command line itself.

    python -m deploy.manual         writes deploy/man/binlog-relay.1 and deploy/completions/

The wheel contains them as files of share/.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import typer
from typer.completion import get_completion_script

from relay.cli.command_line import app

ROOT: Final = Path(__file__).resolve().parent
NAME: Final = "binlog-relay"
_COMPLETE: Final = "_BINLOG_RELAY_COMPLETE"
_EXIT_CODES: Final = (
    ("0", "fine"),
    ("1", "there are findings"),
    ("2", "wrong use or configuration; a file or a full disk that the system refuses"),
    ("3", "the relay cannot follow the source, a retry would not help, and the archive is empty"),
    ("4", "the archive is damaged"),
    ("70", "a fault of binlog-relay: please report it"),
)
_FILES: Final = (
    ("/etc/binlog-relay/relay.toml", "the configuration; docs/CONFIGURATION.md has every key"),
    ("/var/lib/binlog-relay", "the archive, where archive.dir says so"),
)
_ENVIRONMENT: Final = (
    ("BINLOG_RELAY_DEBUG", "1: a fault of binlog-relay is told with its traceback."),
    ("CREDENTIALS_DIRECTORY", "Where the credentials are that password_credential names; systemd sets it."),
    (
        "NOTIFY_SOCKET, WATCHDOG_USEC",
        "Where the service manager listens, and how often it wants to hear; systemd sets them.",
    ),
)
_KINDS: Final = {
    "path": "FILE",
    "'int'": "NUMBER",
    "float": "NUMBER",
    "integer": "NUMBER",
    "'str'": "TEXT",
    "[str]": "TEXT",
    "text": "TEXT",
}
_COMPLETION_FILES: Final = {"bash": NAME, "zsh": f"_{NAME}", "fish": f"{NAME}.fish"}


def pages() -> dict[Path, str]:
    """Return each file with its text."""
    found = {ROOT / "man" / f"{NAME}.1": manual_page()}
    for shell, file in _COMPLETION_FILES.items():
        script = get_completion_script(prog_name=NAME, complete_var=_COMPLETE, shell=shell)
        found[ROOT / "completions" / file] = script.rstrip("\n") + "\n"
    return found


def manual_page() -> str:
    """Return the manual page, for man(1). It has no date, as it belongs to the version."""
    root: Any = typer.main.get_command(app)
    lines = [
        f'.\\" Written by python -m deploy.manual from relay/cli: change the texts there.\n.TH {NAME.upper()} 1 "" {NAME} ""',
        ".SH NAME",
        f"{NAME} \\- {_escaped('relays, checks, archives and serves MySQL and MariaDB binary logs')}",
        ".SH SYNOPSIS",
    ]
    commands = list(_commands(root, ()))
    for number, (words, command) in enumerate(commands):
        lines += [".br"] * (number > 0) + [f".B {_escaped(' '.join((NAME, *words)))}", _escaped(_usage(command))]
    lines += [
        ".SH DESCRIPTION",
        _escaped(
            "A replica upstream, a source downstream: it follows one source, keeps its binary logs as plain files, and serves "
            "them to replicas by file and position or by GTID. It reads one file, relay.toml."
        ),
        ".SH COMMANDS",
    ]
    for words, command in commands:
        lines += [f".SS {_quoted(' '.join(words))}", _escaped(_sentence(command.help))]
        for parameter in command.params:
            lines += _parameter(parameter)
    lines += [".SH EXIT STATUS", *_list(_EXIT_CODES)]
    lines += [".SH ENVIRONMENT", *_list(_ENVIRONMENT)]
    lines += [".SH SIGNALS", *_list((("SIGTERM, SIGINT", "The relay ends within seconds."), ("SIGHUP", _RELOAD)))]
    lines += [".SH FILES", *_list(_FILES)]
    lines += [".SH SEE ALSO", _escaped("mysqlbinlog(1), systemd.exec(5); docs/ in the repository.")]
    return "\n".join(lines) + "\n"


_RELOAD: Final = "It reads relay.toml again and takes over accounts, certificates and the account at the source."


def _commands(command: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield all commands below one, with the words that call them."""
    for name, one in getattr(command, "commands", {}).items():
        if hasattr(one, "commands"):
            yield from _commands(one, (*words, name))
        elif not one.hidden:
            yield (*words, name), one


def _usage(command: Any) -> str:
    words = ["[OPTIONS]"]
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            words.append(_metavar(parameter))
        elif parameter.required:
            words[0:0] = [f"{parameter.opts[0]} {_metavar(parameter)}"]
    return " ".join(words)


def _parameter(parameter: Any) -> list[str]:
    if parameter.param_type_name == "argument":
        term = f".I {_escaped(_metavar(parameter))}"
    else:
        names = ", ".join(f"\\fB{_escaped(name)}\\fR" for name in (*parameter.opts, *parameter.secondary_opts))
        value = "" if parameter.is_flag else f" \\fI{_escaped(_metavar(parameter))}\\fR"
        term = names + value
    return [".TP", term, _escaped(_sentence(parameter.help))]


def _metavar(parameter: Any) -> str:
    if parameter.metavar:
        return str(parameter.metavar)
    # The name is that of the type in typer or click; which of the two knows it depends on the version of typer.
    kind = str(getattr(parameter, "type_descriptor", None) or parameter.type.name).lower()
    return next(shown for part, shown in _KINDS.items() if part in kind)


def _sentence(text: str | None) -> str:
    return " ".join((text or "").split())


def _list(rows: tuple[tuple[str, str], ...]) -> list[str]:
    return [line for term, text in rows for line in (".TP", f".B {_escaped(term)}", _escaped(text))]


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'


def _escaped(text: str) -> str:
    """Return a text as troff reads it: no escape, no request at the beginning, and minus signs that can be copied."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("…", "...")
    return f"\\&{text}" if text.startswith((".", "'")) else text


if __name__ == "__main__":
    for path, text in pages().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
