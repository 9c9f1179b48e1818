"""What a view of a MariaDB left out is counted, told, and the same after a restart."""

from pathlib import Path

import pytest

from relay.archive.storage.files import VIEW_LEFT_OUT_NAME, FileLayer
from relay.view.rules.mariadb.left_out import ACCOUNT, PART, SEQUENCE, LeftOut
from relay.view.rules.mariadb.parts import first_words
from relay.view.translate.kept_left_out import keep_left_out, kept_left_out


def counted() -> LeftOut:
    made = LeftOut()
    made.add([(ACCOUNT, "GRANT"), (ACCOUNT, "GRANT")], "bin.000001", 4)
    made.add([(SEQUENCE, ""), (PART, "the VECTOR key v")], "bin.000001", 99)
    made.add([], "bin.000001", 200)
    made.add_statement("bin.000001", 300)
    made.add_statement("bin.000002", 4)
    return made


def test_transactions_are_counted_by_what_they_lack_and_places_are_listed() -> None:
    made = counted()
    assert made.counts == {ACCOUNT: 1, SEQUENCE: 1, PART: 1}
    assert made.newest == [
        (ACCOUNT, "bin.000001", 4, "GRANT"), (ACCOUNT, "bin.000001", 4, "GRANT"), (PART, "bin.000001", 99, "the VECTOR key v"),
    ]  # fmt: skip
    assert made.told() == (
        "left out of transactions: 1 with statements about accounts, 1 with definitions or values of sequences, 1 with parts of "
        "definitions; 2 change rows by statements, the first at bin.000001:300"
    )


def test_what_was_kept_is_the_same_and_nothing_takes_no_room() -> None:
    again = LeftOut()
    again.restore(counted().state())
    assert again == counted()
    again.restore(b"")
    assert (again, again.state(), again.told()) == (LeftOut(), b"", "")


def test_a_million_places_are_not_held() -> None:
    made = LeftOut()
    for at in range(1000):
        made.add([(ACCOUNT, "GRANT")], "bin.000001", at)
    assert made.counts[ACCOUNT] == 1000
    assert (len(made.newest), made.newest[-1][2]) == (50, 999)


def test_it_is_kept_beside_the_view_and_damage_is_nothing(tmp_path: Path) -> None:
    assert kept_left_out(tmp_path) is None
    keep_left_out(tmp_path, counted(), FileLayer())
    assert kept_left_out(tmp_path) == counted()
    for damage in (b"", b"[]", b"{}", b'{"left_out": 1}'):
        (tmp_path / VIEW_LEFT_OUT_NAME).write_bytes(damage)
        assert kept_left_out(tmp_path) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"CREATE USER secretary IDENTIFIED BY 'word'", "CREATE USER"),
        (b"grant SELECT ON *.* TO x IDENTIFIED BY 'word'", "GRANT"),
        (b"SET PASSWORD FOR x = 'word'", "SET PASSWORD"),
        (b"DROP ROLE r", "DROP ROLE"),
        (b"create or  replace user x identified by 'word'", "CREATE USER"),
        (b"'word'", ""),
    ],
)
def test_of_a_statement_nothing_is_told_that_may_be_a_password(text: bytes, words: str) -> None:
    assert first_words(text, "10.11.6-MariaDB") == words
