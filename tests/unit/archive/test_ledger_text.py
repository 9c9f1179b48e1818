"""`ledger.jsonl`, the second copy of what no binlog says: written with the catalog, compared with it at each start."""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import structlog

from protocol.gtid.gtid_set import GtidSet
from relay.archive.catalog.catalog import Catalog
from relay.archive.catalog.catalog_rows import LedgerRow
from relay.archive.catalog.generation_directories import is_prepared_only
from relay.archive.catalog.ledger_records import read_record
from relay.archive.catalog.ledger_text import encode_line, read_lines
from relay.archive.generation import Generation
from relay.archive.recovery.recovery import Recovery
from relay.archive.storage.archived_file import SourceIdentity
from relay.archive.storage.files import CATALOG_NAME, LEDGER_TEXT_NAME, FileLayer
from relay.archive.storage.origin import Origin
from relay.archive_inspection.listing import read_ledger
from relay.archive_inspection.verify import verify_archive
from tests.support.old_catalog import take_back

U = "11111111-1111-1111-1111-111111111111"
WHO = SourceIdentity("mysql", "8.4.0", 7, U)
ORIGIN = Origin(3.5, "mysql-bin.000001", "old-bin.000009", 400, GtidSet.from_text(f"{U}:1-2"))
ROWS = [LedgerRow(float(n), "test", f"mysql-bin.{n:06d}", n, f'row "{n}"\nü', '{"a": 1}') for n in range(1, 6)]


def lines_in(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (directory / LEDGER_TEXT_NAME).read_text().splitlines()]


def rows_in_text(directory: Path) -> list[LedgerRow]:
    found = (read_record(line) for _at, line in read_lines(FileLayer(), directory / LEDGER_TEXT_NAME).lines)
    return [row for row in found if isinstance(row, LedgerRow)]


def opened(directory: Path) -> Catalog:
    return Catalog.open(directory / CATALOG_NAME, FileLayer())


def recover(directory: Path) -> None:
    Recovery(directory, FileLayer()).run()


def kinds(directory: Path) -> list[str]:
    return [row.kind for row in read_ledger(directory) if row.kind != "test"]


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """An archive without files and with all that is in the text."""
    recover(tmp_path)
    catalog = opened(tmp_path)
    catalog.set_identity(WHO)
    catalog.set_origin(ORIGIN)
    for row in ROWS:
        catalog.add_ledger(row)
    catalog.close()
    return tmp_path


def lose_the_catalog(directory: Path) -> None:
    for path in directory.glob("catalog.sqlite*"):
        path.unlink()


def test_each_way_into_the_ledger_is_written_to_both(tmp_path: Path) -> None:
    catalog = opened(tmp_path)
    catalog.add_ledger(ROWS[0])
    catalog.add_ledger(ROWS[0])
    catalog.add_ledger_once(ROWS[1])
    catalog.add_ledger_once(ROWS[1])
    catalog.forget_files(ROWS[2:4])
    catalog.forget_files(ROWS[2:5])
    assert catalog.ledger() == rows_in_text(tmp_path) == ROWS
    catalog.set_identity(WHO)
    catalog.set_origin(ORIGIN)
    catalog.close()
    assert [line["record"] for line in lines_in(tmp_path)[5:]] == ["source", "origin"]
    assert stat.S_IMODE((tmp_path / LEDGER_TEXT_NAME).stat().st_mode) == 0o640


def test_what_is_added_is_synced_when_the_call_returns(tmp_path: Path) -> None:
    class Disk(FileLayer):
        synced = -1

        def sync_data(self, fd: int) -> None:
            super().sync_data(fd)
            if os.readlink(f"/proc/self/fd/{fd}").endswith(LEDGER_TEXT_NAME):
                Disk.synced = os.fstat(fd).st_size

    catalog = Catalog.open(tmp_path / CATALOG_NAME, Disk())
    for row in ROWS:
        catalog.add_ledger(row)
    catalog.close()
    assert Disk.synced == (tmp_path / LEDGER_TEXT_NAME).stat().st_size


def test_a_lost_catalog_gets_everything_back(filled: Path) -> None:
    lose_the_catalog(filled)
    recovered = Recovery(filled, FileLayer()).run()
    assert (recovered.identity, recovered.origin) == (WHO, ORIGIN)
    assert [row for row in read_ledger(filled) if row.kind == "test"] == ROWS
    assert kinds(filled) == ["catalog_remade"]
    text = rows_in_text(filled)
    recover(filled)
    assert rows_in_text(filled) == text
    assert sorted(text, key=str) == sorted(read_ledger(filled), key=str)


def test_a_catalog_that_was_lost_twice_is_told_twice(filled: Path) -> None:
    for _ in range(2):
        lose_the_catalog(filled)
        recover(filled)
    assert kinds(filled) == ["catalog_remade"] * 2


def test_rows_that_only_one_of_the_two_has_are_added_to_the_other_in_the_order_of_time(filled: Path) -> None:
    early, late = LedgerRow(0.5, "only_text", "a", 1, "early"), LedgerRow(99.0, "only_catalog", "b", 2, "late")
    path = filled / LEDGER_TEXT_NAME
    before = path.read_bytes()
    catalog = opened(filled)
    catalog.add_ledger(late)
    catalog.close()
    # The crash came before the text had it; a row of a catalog that was lost since is in the text alone.
    record = {
        "record": "ledger",
        "time": 0.5,
        "kind": "only_text",
        "file": "a",
        "offset": 1,
        "text": "early",
        "details": "",
    }
    path.write_bytes(before + encode_line(record))
    for _ in range(2):
        recover(filled)
        assert read_ledger(filled) == [early, *ROWS, late]
        assert rows_in_text(filled) == [*ROWS, early, late]


def test_a_line_that_a_crash_cut_is_taken_off_and_completed(filled: Path) -> None:
    path = filled / LEDGER_TEXT_NAME
    whole = path.read_bytes()
    last = whole.rindex(b"\n", 0, -1) + 1
    for size in range(last, len(whole), 7):
        for torn in (whole[:size], whole[:size] + bytes(300) if size == last else whole[:size]):
            path.write_bytes(torn)
            recover(filled)
            assert path.read_bytes() == whole
    assert kinds(filled) == []


def test_a_text_with_a_damaged_line_is_kept_aside_and_made_again_and_named_once(filled: Path) -> None:
    path = filled / LEDGER_TEXT_NAME
    content = bytearray(path.read_bytes())
    at = content.index(b'row \\"2\\"')
    content[at] ^= 1
    path.write_bytes(content)
    (finding,) = verify_archive(filled)
    assert (finding.file, finding.offset) == (LEDGER_TEXT_NAME, content.rindex(b"\n", 0, at) + 1)
    for _ in range(2):
        recover(filled)
        (kept,) = filled.glob(f"{LEDGER_TEXT_NAME}.corrupt-*")
        assert kept.read_bytes().startswith(bytes(content))
        assert list(verify_archive(filled)) == []
        assert [row for row in read_ledger(filled) if row.kind == "test"] == ROWS
        assert kinds(filled) == ["ledger_text_damaged"]
    lose_the_catalog(filled)
    recover(filled)
    assert [row for row in read_ledger(filled) if row.kind == "test"] == ROWS


def test_with_the_catalog_lost_too_a_damaged_line_costs_its_own_row_only(filled: Path) -> None:
    path = filled / LEDGER_TEXT_NAME
    path.write_bytes(path.read_bytes().replace(b'row \\"2\\"', b'row \\"9\\"'))
    lose_the_catalog(filled)
    recover(filled)
    assert [row for row in read_ledger(filled) if row.kind == "test"] == [ROWS[0], *ROWS[2:]]
    assert kinds(filled) == ["catalog_remade", "ledger_text_damaged"]


@pytest.mark.parametrize(
    "happen",
    [
        Path.unlink,
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"not a line\n" * 3),
        lambda path: path.write_bytes(b"no line feed at all"),
        lambda path: (path.unlink(), path.mkdir()),
    ],
    ids=["removed", "emptied", "other lines", "other bytes", "a directory"],
)
def test_a_text_that_was_lost_is_made_again_and_that_is_told(filled: Path, happen: Callable[[Path], object]) -> None:
    happen(filled / LEDGER_TEXT_NAME)
    recover(filled)
    assert [row for row in rows_in_text(filled) if row.kind == "test"] == ROWS
    assert set(kinds(filled)) <= {"ledger_text_remade", "ledger_text_damaged"} != set()
    told = kinds(filled)
    lose_the_catalog(filled)
    recovered = Recovery(filled, FileLayer()).run()
    assert (recovered.identity, recovered.origin) == (WHO, ORIGIN)
    assert kinds(filled) == [*told, "catalog_remade"]


@pytest.mark.parametrize(
    ("happen", "words"),
    [
        (Path.unlink, "was removed"),
        (lambda path: path.write_bytes(b""), "was changed"),
        (lambda path: path.rename(path.with_name("elsewhere")), "was removed"),
        (lambda path: (path.unlink(), path.write_bytes(b"another\n")), "was replaced"),
    ],
    ids=["removed", "emptied", "moved", "replaced"],
)
def test_a_text_that_is_lost_under_a_running_relay_is_made_again_with_the_next_row(
    filled: Path, happen: Callable[[Path], object], words: str
) -> None:
    catalog = opened(filled)
    catalog.add_ledger(LedgerRow(6.0, "test_later", "", -1, "first"))
    happen(filled / LEDGER_TEXT_NAME)
    catalog.add_ledger(LedgerRow(7.0, "test_later", "", -1, "second"))
    catalog.add_ledger(LedgerRow(8.0, "test_later", "", -1, "third"))
    catalog.close()
    assert sorted(rows_in_text(filled), key=str) == sorted(read_ledger(filled), key=str)
    assert kinds(filled) == ["test_later"] * 3 + ["ledger_text_remade"]
    assert words in read_ledger(filled)[-1].text


async def test_a_text_that_cannot_be_written_stops_nothing_and_is_written_later(tmp_path: Path) -> None:
    class Disk(FileLayer):
        refuses = False

        def open_write(self, path: Path) -> int:
            if self.refuses and path.name == LEDGER_TEXT_NAME:
                raise PermissionError(13, "Permission denied", str(path))
            return super().open_write(path)

    disk = Disk()
    await (await Generation.open(tmp_path, layer=disk)).close()
    disk.refuses = True
    generation = await Generation.open(tmp_path, layer=disk)
    with structlog.testing.capture_logs() as logs:
        for n in range(3):
            generation._catalog.write_ledger([LedgerRow(float(n), "test", "", -1, f"row {n}")])
    assert generation.failure is None
    (told,) = (line for line in logs if line["event"] == "ledger_text_not_written")
    assert "Permission denied" in told["what"] and "relay's user" in told["advice"]
    assert rows_in_text(tmp_path) == []
    disk.refuses = False
    generation._catalog.write_ledger([LedgerRow(9.0, "test", "", -1, "row 9")])
    await generation.close()
    assert [row.text for row in rows_in_text(tmp_path)] == ["row 0", "row 1", "row 2", "row 9"]


def test_a_text_beside_a_catalog_of_an_earlier_version_is_no_news(filled: Path) -> None:
    (filled / LEDGER_TEXT_NAME).unlink()
    take_back(filled / CATALOG_NAME, 4)
    recovered = Recovery(filled, FileLayer()).run()
    assert (recovered.identity, recovered.origin, read_ledger(filled)) == (WHO, ORIGIN, ROWS)
    assert rows_in_text(filled) == ROWS


def test_a_generation_whose_catalog_is_lost_is_not_taken_for_one_that_never_began(filled: Path) -> None:
    lose_the_catalog(filled)
    assert is_prepared_only(filled, FileLayer())
    catalog = opened(filled)
    catalog.forget_files([LedgerRow(7.0, "purged", "mysql-bin.000001", 4, "the only one")])
    catalog.close()
    lose_the_catalog(filled)
    assert not is_prepared_only(filled, FileLayer())


def test_a_long_ledger_is_compared_by_its_length_and_last_row(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relay.archive.catalog.ledger_copy._ALWAYS_COMPARED", 2)
    path = filled / LEDGER_TEXT_NAME
    whole = path.read_bytes()
    recover(filled)
    assert path.read_bytes() == whole
    path.write_bytes(whole[: whole.rindex(b"\n", 0, -1) + 1])
    recover(filled)
    assert path.read_bytes() == whole
    lines = whole.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:3] + lines[4:]))
    recover(filled)
    assert sorted(path.read_bytes().splitlines()) == sorted(whole.splitlines())
