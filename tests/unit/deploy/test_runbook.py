"""docs/RUNBOOK.md has an entry for each alert and each kind of the ledger, and what it tells people to type is understood."""

import json
import re
import shlex
from pathlib import Path
from typing import Any, Final

import pytest
import typer

from protocol.statements import SourceFacts, StatementSession, answer_statement
from relay.cli.command_line import app
from tests.support.prometheus_server import RULES
from tests.support.told_names import ledger_kinds, log_events

ROOT: Final = Path(__file__).resolve().parents[3]
PAGE: Final = ROOT / "docs" / "RUNBOOK.md"
TEXT: Final = PAGE.read_text(encoding="utf-8")
PARTS: Final = ["What happened", "Is data at risk", "Look at", "Do", "Over when"]
NO_ENTRY: Final = {"The ledger"}
CODE: Final = re.compile(r"`([^`]+)`|^ {4}(.+)$", re.MULTILINE)
STATEMENT: Final = re.compile(r"(?:SHOW|CALL|PURGE|START|STOP|KILL|FLUSH|SELECT|CHANGE) \S|CALL ")
ALERTS: Final = re.findall(r"- alert: (\w+)", RULES.read_text(encoding="utf-8"))


def entries() -> dict[str, str]:
    """The text of each entry by its heading: an alert's name, or `ledger: kind`."""
    found = re.findall(r"^(?:## (\w[\w ]*)|### (ledger: \w+))\n(.*?)(?=^##|\Z)", TEXT, re.MULTILINE | re.DOTALL)
    names = [alert or kind for alert, kind, _text in found]
    assert len(names) == len(set(names)) == len(re.findall(r"^##", TEXT, re.MULTILINE))
    return {alert or kind: text for alert, kind, text in found}


ENTRIES: Final = {name: text for name, text in entries().items() if name not in NO_ENTRY}
COMMANDS: Final = sorted(
    {words for pair in CODE.findall(TEXT) if (words := "".join(pair)).startswith("binlog-relay ") and "…" not in words}
)
STATEMENTS: Final = sorted({code for code, _block in CODE.findall(TEXT) if STATEMENT.match(code)})
PATHS: Final = sorted(set(re.findall(r"127\.0\.0\.1:9307(/[\w/.?=&-]*)", TEXT)))


def test_each_alert_and_each_kind_of_the_ledger_has_an_entry_and_nothing_else_has() -> None:
    assert list(ENTRIES) == [*ALERTS, *(f"ledger: {kind}" for kind in sorted(ledger_kinds()))]


@pytest.mark.parametrize("name", ENTRIES)
def test_an_entry_has_its_five_parts_in_order(name: str) -> None:
    before, *told = re.split(r"^\*\*([^*]+)\*\*:", ENTRIES[name], flags=re.MULTILINE)
    assert not before.strip()
    assert told[::2] == PARTS
    assert all(text.strip() for text in told[1::2])


@pytest.mark.parametrize("name", ENTRIES)
def test_the_risk_begins_with_a_plain_word(name: str) -> None:
    risk = re.search(r"^\*\*Is data at risk\*\*: (.*)", ENTRIES[name], re.MULTILINE)
    assert risk is not None and re.match(r"(No|Not yet|Perhaps|Yes)[.,]", risk[1])


def test_each_alert_names_its_entry() -> None:
    named = re.findall(r"- alert: (\w+)(?:(?!- alert)[\s\S])*?runbook: \"docs/RUNBOOK\.md#(\S+)\"", RULES.read_text())
    assert named == [(alert, alert.lower()) for alert in ALERTS]


def understood(command: str) -> tuple[Any, list[str]]:
    """The command of the command line that is meant, and the words behind its name."""
    words = shlex.split(command, comments=True)[1:]
    found: Any = typer.main.get_command(app)
    while words and hasattr(found, "commands"):
        assert words[0] in found.commands, command
        found = found.commands[words.pop(0)]
    return found, words


def test_there_are_commands_statements_and_paths_to_look_at() -> None:
    assert len(COMMANDS) > 15 and len(STATEMENTS) > 10 and len(PATHS) > 8


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_understood(command: str) -> None:
    found, words = understood(command)
    assert found.make_context(found.name, words).command is found


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_is_understood(statement: str) -> None:
    session = StatementSession(SourceFacts("mysql", "8.4.0", 3, None, "CRC32"), 42, user="dba", host="::1")
    session.is_admin = True
    assert answer_statement(statement, session, 1_700_000_000.5) is not None


@pytest.mark.parametrize("pattern", sorted(set(re.findall(r"Binlog_relay_\w+", TEXT))))
def test_a_status_variable_is_there(pattern: str) -> None:
    text = (ROOT / "relay" / "admin" / "status_variables.py").read_text(encoding="utf-8")
    assert f'"{pattern}' in text


@pytest.mark.parametrize("path", PATHS)
def test_a_path_is_answered(path: str) -> None:
    described = json.loads((ROOT / "docs" / "openapi.json").read_text(encoding="utf-8"))["paths"]
    name, _, query = path.removeprefix("/api/v1").partition("?")
    if not path.startswith("/api/v1"):
        assert name in ("/healthz", "/readyz", "/metrics")
        return
    given = {pair.partition("=")[0] for pair in query.split("&") if pair}
    taken = described[name]["get"]["parameters"]
    assert given <= {one["name"] for one in taken}
    assert {one["name"] for one in taken if one["required"]} <= given


def test_the_events_of_the_log_that_entries_name_are_there() -> None:
    named = set(re.findall(r"event \[?`(\w+)`", TEXT))
    assert named
    assert named <= set(log_events())


def test_the_status_page_and_the_other_documents_lead_here() -> None:
    for document in ("README.md", "docs/ERRORS.md", "docs/METRICS.md", "docs/STATUS-PAGE.md"):
        assert re.search(r"RUNBOOK\.md", (ROOT / document).read_text(encoding="utf-8")), document


def test_the_fields_of_answers_that_entries_name_are_there() -> None:
    described = (ROOT / "docs" / "openapi.json").read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+_in_s|\w+_per_s|behind_\w+|asked_at|trouble|gaps|held_back|advice)`", TEXT))
    assert named
    assert not {one for one in named if f'"{one}"' not in described}
