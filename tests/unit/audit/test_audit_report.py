"""Reports of audits: numbers as people read them, names that cannot act, charts, and a page that stands alone."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from relay.audit.runner.audit_outcome import Outcome, index_row, page_of, summary
from relay.audit.runner.audit_result import AuditFinding, AuditResult, Place
from relay.audit.runner.job import Job
from relay.report import text
from relay.report.charts import axis_values, svg
from relay.report.content import Bars, Columns, Fact, OverTime, Page, ReportTable, Section, Shares, Unit
from relay.report.page import html, index_html
from relay.report.time_steps import covered_of, time_slots, time_step
from tests.audit.checked_page import CheckedPage

HOSTILE = "</code><script>alert(1)</script>\"'&\x1b[31m\x00\u202egnp.exe\ufeff\ud800"
BEGUN = datetime(2026, 1, 1, tzinfo=UTC)


def test_nothing_in_a_name_can_act() -> None:
    shown = text.shown(HOSTILE)
    assert shown.startswith("</code><script>alert(1)</script>\"'&\\x1b[31m\\x00\\u202egnp.exe\\ufeff\\ud800")
    assert text.shown("a\nb\tc") == "a b c"
    assert text.shown("größe 表 🐬") == "größe 表 🐬"
    assert text.shown("x" * 5000).endswith("… (1000 characters more)")


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (text.size(0), "0 B"),
        (text.size(1023), "1,023 B"),
        (text.size(1536), "1.5 KiB"),
        (text.size(3 << 40), "3.0 TiB"),
        (text.span(0), "0 s"),
        (text.span(0.34), "0.3 s"),
        (text.span(75), "1 min 15 s"),
        (text.span(7200), "2 h"),
        (text.span(90000), "1 d 1 h"),
        (text.share(0, 10), "0 %"),
        (text.share(1, 100_000), "< 0.1 %"),
        (text.share(99_999, 100_000), "> 99.9 %"),
        (text.share(1, 3), "33.3 %"),
        (text.share(1, 0), "-"),
        (text.number_of(1, "file"), "1 file"),
        (text.number_of(2, "query"), "2 queries"),
        (text.number_of(1234, "day"), "1,234 days"),
        (text.moment(None), "-"),
        (text.moment(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)), "2026-01-02 03:04:05"),
    ],
)
def test_numbers_read_as_people_write_them(told: str, expected: str) -> None:
    assert told == expected


def page(*sections: Section) -> str:
    return html(Page(HOSTILE, HOSTILE, HOSTILE, False, HOSTILE, [Fact(HOSTILE, HOSTILE)], list(sections)))


def test_a_page_stands_alone_and_shows_hostile_names_as_they_are() -> None:
    table = ReportTable(HOSTILE, {HOSTILE: "code", "n": "count"}, [(HOSTILE, 1), (None, 2)], left_out=3, note=HOSTILE)
    charts = [
        Bars(HOSTILE, [(HOSTILE, 3.0), ("b", 0)]),
        Columns(HOSTILE, [(HOSTILE, 3.0)], "bytes"),
        Shares(HOSTILE, [(HOSTILE, 3.0), ("b", 1)]),
        OverTime(HOSTILE, {HOSTILE: [(BEGUN, 1.0)], "b": [(BEGUN, 2.0)]}, 60),
    ]
    read = CheckedPage(page(Section(HOSTILE, HOSTILE, charts, [table])))
    assert read.text.count("<script>alert(1)</script>") > 15
    assert "script" not in read.tags
    assert "\u202e" not in read.text
    assert "3 rows more left out by --limit." in read.text


def test_an_empty_report_says_that_nothing_is_there() -> None:
    read = CheckedPage(
        page(Section("Empty", charts=[Bars("No bars", [])], tables=[ReportTable("No rows", {"a": "text"}, [])]))
    )
    assert "There is nothing to draw." in read.text
    assert "None." in read.text


def test_every_text_of_an_outcome_may_be_hostile_also_in_the_page_over_several() -> None:
    place = Place(HOSTILE, 4, HOSTILE, BEGUN, 3, HOSTILE, BEGUN, HOSTILE)
    finding = AuditFinding("a_finding", "error", HOSTILE, HOSTILE, 3, [place])
    result = AuditResult(HOSTILE, [finding], [Section(HOSTILE, HOSTILE)])
    job = Job("boundaries", HOSTILE, HOSTILE, lambda audit: result)
    outcome = Outcome(job, result, [Fact(HOSTILE, HOSTILE)], 0, HOSTILE, Path("report.html"))
    of_one = CheckedPage(html(page_of(outcome, index=True)))
    of_all = CheckedPage(index_html(HOSTILE, HOSTILE, outcome.facts, [index_row(outcome)], [(HOSTILE, HOSTILE)]))
    for read in (of_one, of_all):
        assert read.text.count("<script>alert(1)</script>") >= 8
        assert "script" not in read.tags
        assert "\u202e" not in read.text


def outcome_of(*findings: AuditFinding) -> Outcome:
    result = AuditResult("verdict", list(findings), figures={"bytes": 5})
    job = Job("boundaries", "Title", "what", lambda audit: result)
    facts = [Fact("bytes", "16.2 MiB", {"bytes": 16_986_931}), Fact("took", "36 s", {"took_seconds": 36.2})]
    return Outcome(job, result, facts, 0, "complete", Path("out/report.html"))


def test_what_programs_read_has_numbers_and_iso_times() -> None:
    place = Place("bin.000001", 4, "text", BEGUN, 7, "bin.000003:9", BEGUN + timedelta(hours=1))
    told = summary(outcome_of(AuditFinding("a", "note", "A", "advice", 7, [place], 1)))
    assert told["read"] == {"bytes": 16_986_931, "took_seconds": 36.2}
    assert told["figures"] == {"bytes": 5}
    (finding,) = told["findings"]  # type: ignore[misc]
    assert finding["places"] == [
        {
            "file": "bin.000001",
            "position": 4,
            "time": "2026-01-01T00:00:00Z",
            "text": "text",
            "count": 7,
            "last": "bin.000003:9",
            "last_time": "2026-01-01T01:00:00Z",
        }
    ]


def test_only_what_the_limit_leaves_out_is_said_to_be_left_out_by_it() -> None:
    alike = AuditFinding("alike", "error", "Alike", "", 256, [Place("f", 4, "t", None, 255), Place("f", 9, "u")], 2)
    cut = AuditFinding("cut", "error", "Cut", "", 256, [Place("f", 4, "t"), Place("f", 9, "u")])
    counted = AuditFinding("counted", "note", "Counted", "", 9, [])
    assert [finding.left_out for finding in (alike, cut, counted)] == [0, 254, 0]
    read = CheckedPage(html(page_of(outcome_of(alike, cut, counted))))
    assert read.text.count("more left out by --limit.") == 1
    assert "254 rows more left out by --limit." in read.text


def test_the_contents_lead_to_every_chapter_and_the_findings_to_their_cases() -> None:
    outcome = outcome_of(AuditFinding("gap", "error", "Gaps", "", 1, [Place("f", 4, "t")]))
    outcome.result.sections.append(Section("Files", charts=[Bars("Bytes", [("f", 3)])]))
    page = html(page_of(outcome))
    read = CheckedPage(page)
    assert read.leads_to == {"section-1", "section-2", "cases", "cases-gap"}
    assert page.index("<svg") < page.index('id="cases-gap"')  # charts before long listings


def test_columns_of_one_kind_are_equally_wide_in_every_listing() -> None:
    tables = [
        ReportTable("", {"place": "place", name: "text", "n": "count"}, [("f:4", "t", 1)]) for name in ("a", "b" * 99)
    ]
    made = page(Section("s", tables=tables))
    columns = re.findall(r"<colgroup>.*?</colgroup>", made)
    assert len(columns) == 2
    assert columns[0] == columns[1]


def test_bars_beyond_what_can_be_read_become_one() -> None:
    drawn = svg(Bars("Many", [(f"name {number}", 1000 - number) for number in range(100)]))
    assert drawn.count("<title>") == 20
    assert "81 others: 76,221" in drawn


def test_a_chart_is_of_reasonable_size_and_runs_nothing() -> None:
    series = {name: [(BEGUN + timedelta(seconds=step), 7.0 + step) for step in range(120)] for name in "abc"}
    drawn = svg(OverTime("Full", series, 1))
    assert len(drawn) < 50_000
    assert "script" not in drawn
    assert "style" not in drawn


def test_columns_over_time_stand_where_their_time_is_and_are_never_too_many() -> None:
    series = [(BEGUN + timedelta(hours=hour), 1.0) for hour in (0, 1, 3)]
    drawn = svg(OverTime("Rate", {"n": series}, 3600))
    assert drawn.count("<title>") == 3
    assert "2026-01-01 03:00:00 UTC, n: 1" in drawn
    years = [(BEGUN + timedelta(hours=hour), 1.0) for hour in range(0, 24 * 365 * 3, 24)]
    slots = list(time_slots({"n": years}, 3600))
    assert 120 < len(slots) <= 240
    assert sum(slot.values[0] for slot in slots) == len(years)


@pytest.mark.parametrize(
    ("seconds", "step"),
    [(0, 1), (21, 1), (119, 1), (600, 5), (1500, 15), (3600, 30), (86400, 900), (86400 * 30, 21600)],
)
def test_a_step_of_time_fits_what_is_shown(seconds: int, step: int) -> None:
    assert time_step(BEGUN, BEGUN + timedelta(seconds=seconds)) == step


def test_a_step_that_is_not_whole_is_divided_by_what_there_is_of_it() -> None:
    first, last = BEGUN + timedelta(seconds=50), BEGUN + timedelta(seconds=129)
    covered = [covered_of(BEGUN + timedelta(seconds=begin), 60, first, last) for begin in (0, 60, 120)]
    assert covered == [10, 60, 10]
    series = {"n": [(BEGUN, 100.0), (BEGUN + timedelta(seconds=60), 600.0), (BEGUN + timedelta(seconds=120), 100.0)]}
    drawn = svg(OverTime("Rate", series, 60, between=(first, last)))
    assert drawn.count("n: 10 a second") == 3


@pytest.mark.parametrize(
    ("most", "unit", "values"),
    [
        (30_489, "count", [0, 10_000, 20_000, 30_000]),
        (16.2 * (1 << 20), "bytes", [number << 20 for number in (0, 4, 8, 12, 16)]),
        (1, "count", [0, 1]),
        (3, "count", [0, 1, 2, 3]),
        (0, "count", [0]),
    ],
)
def test_an_axis_ends_where_its_values_end(most: float, unit: Unit, values: list[float]) -> None:
    assert axis_values(most, unit) == values
