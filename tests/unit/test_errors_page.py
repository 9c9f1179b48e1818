"""docs/ERRORS.md explains what the relay tells: every event of the log, every kind of the ledger, every trouble with a source."""

import re
from pathlib import Path

import pytest

from relay.process.log_setup import point_to_page
from tests.support.told_names import error_texts, ledger_kinds, log_events, source_troubles

PAGE = Path(__file__).resolve().parents[2] / "docs" / "ERRORS.md"
ENTRY = re.compile(r"^### (?P<part>\w+): (?P<name>\w+)\n\n(?P<text>.*?)(?=^#|^<a|\Z)", re.MULTILINE | re.DOTALL)
ANCHOR = re.compile(r'<a id="([\w-]+)"></a>')


def entries(part: str) -> dict[str, str]:
    found = [match for match in ENTRY.finditer(PAGE.read_text(encoding="utf-8")) if match["part"] == part]
    names = [match["name"] for match in found]
    assert len(names) == len(set(names)), "an anchor is there twice"
    return {match["name"]: " ".join(match["text"].split()) for match in found}


def anchors() -> set[str]:
    text = PAGE.read_text(encoding="utf-8")
    return {f"{match['part']}-{match['name']}" for match in ENTRY.finditer(text)} | set(ANCHOR.findall(text))


def quoted(text: str) -> list[str]:
    """The sentences that an entry about a replica's error begins with."""
    return re.findall(r"`([^`]+)`", text.partition(" Data: ")[0])


def test_the_page_has_the_events_of_the_log_and_no_others() -> None:
    assert set(entries("log")) == set(log_events())


def test_the_page_has_the_kinds_of_the_ledger_and_no_others() -> None:
    assert set(entries("ledger")) == set(ledger_kinds())


def test_the_page_has_the_troubles_with_a_source_and_no_others() -> None:
    assert set(entries("source")) == set(source_troubles())


@pytest.mark.parametrize("event", sorted(log_events()))
def test_an_event_is_shown_with_its_levels(event: str) -> None:
    levels = re.match(r"Level: ([\w, ]+)\.", entries("log")[event])
    assert levels is not None and set(levels[1].split(", ")) == log_events()[event]


@pytest.mark.parametrize("part", ["log", "source", "ledger", "replica"])
def test_every_entry_says_what_becomes_of_the_data(part: str) -> None:
    assert not {name for name, text in entries(part).items() if "Data: " not in text}


def test_every_warning_and_error_points_to_a_place_on_the_page() -> None:
    told = {(event, level) for event, levels in log_events().items() for level in levels}
    lines = [{"event": event, "level": level} for event, level in told]
    lines += [{"event": "archive_ledger", "level": "warning", "kind": kind} for kind in ledger_kinds()]
    lines += [{"event": "archive_ledger", "level": "warning", "kind": name} for name in source_troubles()]
    lines += [{"event": "source_lost", "level": "warning", "trouble": name} for name in source_troubles()]
    general = {"archive_ledger", "archive_recovery_finding", "source_lost", "source_given_up"}
    seen = {
        str(point_to_page(None, "", dict(line)).get("see", ""))
        for line in lines
        if len(line) > 2 or line["event"] not in general
    }
    assert {see.partition("#")[2] for see in seen if see} <= anchors()


def test_every_error_of_a_replica_is_on_the_page() -> None:
    shown = [sentence for text in entries("replica").values() for sentence in quoted(text)]
    assert not {texts for texts in error_texts() if not any(sentence in text for sentence in shown for text in texts)}


def test_the_page_quotes_no_error_that_is_not_there() -> None:
    told = {text for texts in error_texts() for text in texts}
    shown = {sentence for text in entries("replica").values() for sentence in quoted(text)}
    assert not {sentence for sentence in shown if not any(sentence in text for text in told)}
