"""Reports of audits: numbers as people read them, names that cannot act, charts, and a page that stands alone."""

from datetime import UTC, datetime, timedelta

import pytest

from relay.audit.report import text
from relay.audit.report.charts import svg, time_step
from relay.audit.report.content import Bars, Columns, OverTime, Page, ReportTable, Section, Shares
from relay.audit.report.page import html
from tests.audit.checked_page import CheckedPage

HOSTILE = "</code><script>alert(1)</script>\"'&\x1b[31m\x00\u202egnp.exe\ufeff\ud800"
BEGUN = datetime(2026, 1, 1, tzinfo=UTC)


def test_nothing_in_a_name_can_act() -> None:
    shown = text.shown(HOSTILE)
    assert shown.startswith("</code><script>alert(1)</script>\"'&\\x1b[31m\\x00\\u202egnp.exe\\ufeff\\ud800")
    assert text.markup(HOSTILE).startswith("&lt;/code&gt;&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#x27;&amp;\\x1b")
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
    return html(Page(HOSTILE, HOSTILE, HOSTILE, False, HOSTILE, [(HOSTILE, HOSTILE)], list(sections)))


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


def test_bars_beyond_what_can_be_read_become_one() -> None:
    drawn = svg(Bars("Many", [(f"name {number}", 1000 - number) for number in range(100)]))
    assert drawn.count("<rect") == 20
    assert "81 others: 76,221" in drawn


def test_columns_over_time_stand_where_their_time_is_and_are_never_too_many() -> None:
    series = [(BEGUN + timedelta(hours=hour), 1.0) for hour in (0, 1, 3)]
    drawn = svg(OverTime("Rate", {"n": series}, 3600))
    assert drawn.count('class="s0"') == 3
    assert "2026-01-01 03:00:00 UTC, n: 1" in drawn
    years = [(BEGUN + timedelta(hours=hour), 1.0) for hour in range(0, 24 * 365 * 3, 24)]
    assert svg(OverTime("Rate", {"n": years}, 3600)).count('class="s0"') <= 240


@pytest.mark.parametrize(("seconds", "step"), [(0, 1), (119, 1), (3600, 30), (86400, 1800), (86400 * 30, 21600)])
def test_a_step_of_time_fits_what_is_shown(seconds: int, step: int) -> None:
    assert time_step(BEGUN, BEGUN + timedelta(seconds=seconds)) == step
