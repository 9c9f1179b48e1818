"""What others chose as a name is shown on one line, without what a terminal or an eye obeys, and no longer than is good."""

import random

import pytest

from protocol.errors import Malformed
from protocol.position import MOST_NAME_BYTES, binlog_number, is_binlog_name
from protocol.printable import printable
from relay.commands.archive_command import print_table

NASTY = (
    "\x1b[2J", "\x1b]0;pwned\x07", "\r\n", "\n", "\0", "\x7f", "\x9b31m", "\u202e", "\u2066", "\u200b", "\u200d", "\ufeff", "\u2028",
    "\udc80", "\U000e0041", "\t",
)  # fmt: skip
OBEYED = {char for text in NASTY for char in text if not char.isprintable()}


def texts(count: int) -> list[str]:
    chance = random.Random(7)
    return [
        "".join(chance.choice((*NASTY, "mysql-bin", "ü", "日", "x" * 500)) for _ in range(chance.randrange(1, 30)))
        for _ in range(count)
    ]


@pytest.mark.parametrize("most", [0, 1, 7, 200, 1000])
def test_nothing_that_is_obeyed_is_left_and_the_length_is_bounded(most: int) -> None:
    for text in texts(300):
        shown = printable(text, most)
        assert not OBEYED & set(shown) and len(shown.encode()) <= most


def test_what_can_be_seen_stays() -> None:
    assert printable("Größe 日本 'x' <y>") == "Größe 日本 'x' <y>"


@pytest.mark.parametrize("nasty", NASTY)
def test_a_binlogs_name_has_nothing_that_is_obeyed(nasty: str) -> None:
    name = f"a{nasty}b.000001"
    assert not is_binlog_name(name)
    with pytest.raises(Malformed) as refused:
        binlog_number(name)
    assert not OBEYED & set(str(refused.value))


def test_a_binlogs_name_has_a_bound_in_bytes() -> None:
    assert is_binlog_name("x" * (MOST_NAME_BYTES - 7) + ".000001")
    for base in ("x" * (MOST_NAME_BYTES - 6), "ü" * 97, "x" * 10_000):
        with pytest.raises(Malformed) as refused:
            binlog_number(f"{base}.000001")
        assert len(str(refused.value)) < 2 * MOST_NAME_BYTES


@pytest.mark.parametrize("name", ["mysql-bin.000001", "my bin.000001", "größe.000001", ".hidden.000001", "-rf.000001"])
def test_names_that_servers_have_are_taken(name: str) -> None:
    assert binlog_number(name) == 1


def test_tables_of_commands_have_a_line_for_each_row(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [(text, "1") for text in texts(50)]
    print_table(("file", "end"), rows, numbers=(1,))
    lines = capsys.readouterr().out.split("\n")
    assert len(lines) == 51 and not (OBEYED - {"\t", "\n"}) & set("".join(lines))
