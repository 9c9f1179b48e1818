"""The reader without Spark: what it gives, in which order, and how it goes on; and the sequence that orders everything."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[audit]'")

from relay.binlog_tables.arrow import newest, oldest, read, sequence_of
from relay.binlog_tables.plan.places import PositionGone
from relay.binlog_tables.plan.read_finding import BinlogUnreadable, FileLost, ReadRefused
from relay.binlog_tables.plan.schemas import LEVELS, known_columns
from relay.binlog_tables.plan.sequence import base_of, sequence_at
from relay.binlog_tables.plan.series_files import NothingToRead
from tests.audit.test_rows import shop_binlog
from tests.audit.test_splits import add_transaction, big_binlog, write
from tests.support.archive_filling import fill
from tests.support.binlog_builder import BinlogBuilder


def found(path: Any, level: str, *columns: str, **options: Any) -> list[tuple[Any, ...]]:
    batches = read(path, level, columns=list(columns), **options)
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def archive(directory: Path) -> Path:
    """Files of two rotations and another number of digits."""
    for number in (7, 999_999, 1_000_000):
        write(directory, f"bin.{number:06}", binlog_of_rows().data)
    return directory


def binlog_of_rows(transactions: int = 20) -> BinlogBuilder:
    binlog = BinlogBuilder()
    for number in range(transactions):
        add_transaction(binlog, *[30 + number] * (1 + number % 3))
    return binlog


# ---- sequence ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", ["transactions", "rows"])
def test_a_sequence_rises_from_transaction_to_transaction_over_files(tmp_path: Path, level: str) -> None:
    place = "start" if level == "transactions" else "transaction"
    rows = found(archive(tmp_path), level, "sequence", "file", place)
    sequences = [row[0] for row in rows]
    assert sequences == sorted(sequences)
    assert len(set(sequences)) == len({row[1:] for row in rows}) == 60
    assert {sequence_of(tmp_path, f"{file}:{position}"): sequence for sequence, file, position in rows} == {
        one: one for one in sequences
    }


def test_sequence_and_row_are_the_same_whatever_else_is_read(tmp_path: Path) -> None:
    columns = ("sequence", "row", "file", "transaction", "operation")
    every = found(archive(tmp_path), "rows", *columns)
    assert [row[:2] for row in every] == sorted({row[:2] for row in every})
    assert found(tmp_path, "rows", *columns, where={"operation": "insert"}) == every
    (tmp_path / "bin.000007").unlink()
    rest = [row for row in every if row[2] != "bin.000007"]
    assert found(tmp_path, "rows", *columns) == rest
    assert found(tmp_path / "bin.1000000", "rows", *columns) == [row for row in rest if row[2] == "bin.1000000"]
    middle = newest(tmp_path, "bin.999999:4", max_bytes=3000)
    assert found(tmp_path, "rows", *columns, end=middle) + found(tmp_path, "rows", *columns, start=middle) == rest


@pytest.mark.parametrize("level", ["events", "table_maps", "findings"])
def test_an_events_sequence_lies_between_its_transactions_and_the_next(tmp_path: Path, level: str) -> None:
    damaged = bytearray(archive(tmp_path).joinpath("bin.000007").read_bytes())
    damaged[binlog_of_rows().events[9].start + 25] ^= 1
    write(tmp_path, "bin.000007", damaged)
    starts = dict(found(tmp_path, "transactions", "sequence", "start"))
    rows = found(tmp_path, level, "sequence", "position")
    assert rows
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)
    for sequence, position in rows:
        behind = [start for one, start in starts.items() if one <= sequence and one >> 30 == sequence >> 30]
        assert not behind or max(behind) <= position < max(behind) + 1000


async def test_a_later_source_comes_behind_whatever_its_files_are_called(tmp_path: Path) -> None:
    await fill(tmp_path, ("mysql-bin.000900", bytes(binlog_of_rows().data)))
    await fill(tmp_path / "g0002", ("mysql-bin.000001", bytes(binlog_of_rows().data)))
    rows = found(tmp_path / "mysql-bin.0*", "transactions", "sequence")
    later = found(tmp_path / "g0002", "transactions", "sequence")
    assert len(rows) == len(later) == 20
    assert max(rows) < min(later)
    assert later[0][0] >> 53 == 2


def test_names_that_tell_no_order_have_no_sequence(tmp_path: Path) -> None:
    write(tmp_path, "copy", big_binlog(1).data)
    assert found(tmp_path / "copy", "transactions", "sequence") == [(None,)]
    for name in ("a.000002", "b.000001"):
        write(tmp_path, name, big_binlog(1).data)
    assert found(tmp_path, "transactions", "sequence") == [(None,), (None,)]
    assert sequence_of(tmp_path, "a.000002:4") is None


def test_what_a_sequence_cannot_hold_is_an_error_and_no_wrong_number(tmp_path: Path) -> None:
    write(tmp_path, "bin.99999999", big_binlog(1).data)
    with pytest.raises(ReadRefused, match=r"the number or the generation of bin\.99999999"):
        found(tmp_path, "transactions", "sequence")
    assert found(tmp_path, "transactions", "file") == [("bin.99999999",)]
    base = base_of(1023, (1 << 23) - 1)
    assert sequence_at("bin.1", base, (1 << 34) - 1) == (1 << 63) - 1
    with pytest.raises(ReadRefused, match="position 17179869184"):
        sequence_at("bin.1", base, 1 << 34)


# ---- places ------------------------------------------------------------------------------------------------------------


def test_reads_from_place_to_place_hold_every_transaction_once(tmp_path: Path) -> None:
    for number, count in enumerate((60, 1, 400, 30), 1):
        write(tmp_path, f"bin.{number:06}", big_binlog(count).data)
    every = found(tmp_path, "transactions", "file", "start")
    at, parts, turn = oldest(tmp_path), [], 0
    while True:
        end = newest(tmp_path, at, max_bytes=100_000)
        if end == at:
            break
        parts += found(tmp_path, "transactions", "file", "start", start=at, end=end, overlap="executed", keeps=True)
        at, turn = end, turn + 1
    assert parts == every
    assert turn > 5
    assert at == newest(tmp_path)


def test_places_that_cannot_be_are_refused(tmp_path: Path) -> None:
    archive(tmp_path)
    with pytest.raises(ReadRefused, match=r"start bin\.000007:5 is not between two transactions"):
        read(tmp_path, start="bin.000007:5")
    with pytest.raises(PositionGone, match=r"The first position there is bin\.000007:4"):
        read(tmp_path, start="bin.000006:4")
    for wrong in ({"start": "x"}, {"level": "all"}, {"columns": ["x"]}, {"table": "x"}, {"where": {"position": ["4"]}},
                  {"since": "yesterday"}, {"mode": "fast"}, {"overlap": "once"}):  # fmt: skip
        with pytest.raises(ValueError, match=r"x|all|position|yesterday|fast|once"):
            read(tmp_path, **wrong)
    with pytest.raises(NothingToRead):
        read(tmp_path / "nothing")


# ---- what is read ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", list(LEVELS))
def test_every_column_of_every_level_can_be_read(tmp_path: Path, level: str) -> None:
    reader = read(archive(tmp_path), level, columns=list(known_columns(level)))
    assert reader.schema.names == list(known_columns(level))
    table = reader.read_all()
    table.validate(full=True)
    assert table.num_rows > 0 or level in ("statements", "findings")


def test_several_paths_are_parts_of_one_source(tmp_path: Path) -> None:
    (tmp_path / "cold").mkdir()
    (tmp_path / "warm").mkdir()
    write(tmp_path / "cold", "bin.000001", big_binlog(3).data)
    write(tmp_path / "warm", "bin.000002", big_binlog(3).data)
    paths = [tmp_path / "warm", tmp_path / "cold"]
    rows = found(paths, "transactions", "sequence", "file")
    assert [row[1] for row in rows] == ["bin.000001"] * 3 + ["bin.000002"] * 3
    assert rows == sorted(rows)
    write(tmp_path / "warm", "bin.000001", big_binlog(3).data)
    with pytest.raises(NothingToRead, match="have one name"):
        read(paths)


def test_a_table_alone_is_read_with_what_is_wrong_where_nobody_knows_the_table(tmp_path: Path) -> None:
    write(tmp_path, "bin.000001", binlog_of_rows().data)
    ((schema, table),) = set(found(tmp_path, "rows", "schema", "table"))
    assert len(found(tmp_path, "rows", "row", table=f"{schema}.{table}")) == len(found(tmp_path, "rows", "row"))
    assert found(tmp_path, "rows", "row", table=f"{schema}.other") == []
    assert found(tmp_path, "table_maps", "position", table=f"{schema}.other") == []
    write(tmp_path, "bin.000002", b"no binlog at all")
    assert found(tmp_path, "rows", "file", "finding", table=f"{schema}.other") == [("bin.000002", "not_a_binlog")]


def test_rows_of_a_table_that_nobody_names_are_told_to_readers_of_every_table(tmp_path: Path) -> None:
    binlog = shop_binlog(2)
    data = bytearray(binlog.data)
    data[next(event.start for event in binlog.events if event.kind == 19) + 19] = 43
    write(tmp_path, "bin.000001", data)
    rows = found(tmp_path, "rows", "operation", "finding", table="shop.orders")
    assert (None, "table_map_missing") in rows
    others = found(tmp_path, "rows", "operation", "finding", table="shop.other")
    assert (None, "table_map_missing") in others
    assert {operation for operation, _finding in others} == {None}


def test_of_a_rows_statement_only_so_much_is_read_as_is_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path, "bin.000001", shop_binlog(2).data)
    whole = [row[0] for row in found(path, "rows", "statement")]
    cut = [row[0] for row in found(path, "rows", "statement", statement_characters=6)]
    assert cut == [None if text is None else text[:6] for text in whole] and "INSERT" in cut


def test_what_cannot_be_read_is_a_row_or_an_error_as_is_asked_for(tmp_path: Path) -> None:
    binlog = big_binlog(5)
    path = write(tmp_path, "bin.000001", binlog.data)
    planned = read(tmp_path, "transactions", mode="failfast")
    keeping = read(tmp_path, "transactions", keeps=True)
    rows = read(tmp_path, "transactions", columns=["finding"])
    path.write_bytes(binlog.data[: binlog.boundaries[2]])
    with pytest.raises(BinlogUnreadable, match="file_shrunk"):
        planned.read_all()
    with pytest.raises(FileLost, match="file_shrunk"):
        keeping.read_all()
    assert rows.read_all()["finding"].to_pylist()[-1] == "file_shrunk"


def test_a_reader_that_is_left_alone_reads_nothing_on(tmp_path: Path) -> None:
    for number in range(1, 30):
        write(tmp_path, f"bin.{number:06}", big_binlog(3).data)
    with read(tmp_path, "transactions") as reader:
        assert reader.read_next_batch().num_rows == 3
        for path in tmp_path.iterdir():
            path.unlink()


@pytest.mark.parametrize(
    "line",
    [
        "import duckdb; print(duckdb.sql('SELECT count(*), max(sequence) FROM rows').fetchall()[0][0])",
        "import polars; print(polars.from_arrow(rows.read_all()).select('sequence', 'after').height)",
        "print(len(rows.read_pandas()))",
    ],
    ids=["duckdb", "polars", "pandas"],
)
def test_other_tools_take_it_in_one_line_and_without_spark(tmp_path: Path, line: str) -> None:
    pytest.importorskip(line.split()[1].rstrip(";") if line.startswith("import") else "pandas")
    write(tmp_path, "bin.000001", binlog_of_rows().data)
    code = f"""
import sys
sys.modules["pyspark"] = None
from relay.binlog_tables.arrow import read
rows = read({str(tmp_path)!r}, "rows")
{line}
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    # DuckDB draws a progress bar before the answer where a machine is busy.
    assert (done.stdout.split()[-1:], done.returncode) == ([str(len(found(tmp_path, "rows", "row")))], 0), done.stderr


def test_an_argument_that_read_does_not_have_is_refused_with_the_one_that_was_meant(tmp_path: Path) -> None:
    with pytest.raises(ReadRefused, match=r"no argument 'tabel'\. Did you mean table\?"):
        read(archive(tmp_path), "rows", tabel="shop.orders")  # type: ignore[call-arg]
