"""Which transactions would wait for which: counted file by file it is what a view says that goes over all of them in order."""

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import TypeVar

import pytest

import relay.view.inspect.dry_run_waits as dry_run_waits
from protocol.sql.tables.source_table import Column, Table, whole_key
from relay.archive.archive import Archive
from relay.schema_history.schema_record import Line, line, parse_lines, table_line
from relay.source_tables.table_facts import table_facts
from relay.view.dependencies import planned_tables
from relay.view.dependencies.planned_tables import PlannedTables, taken_lines
from relay.view.inspect.dry_run_stops import find_stops
from relay.view.inspect.dry_run_waits import find_waits
from relay.view.inspect.file_pass import LookedAtFile
from relay.view.translate.wait_counts import WaitCounts
from tests.support.archive_filling import fill
from tests.support.keyed_binlog import KeyedBinlog
from tests.support.memory_file import MemoryFile
from tests.support.view_making import made_view, settings, until_made

WANTED = settings(dependencies="writeset")
_Task = TypeVar("_Task")
_Result = TypeVar("_Result")


def name_of(number: int) -> str:
    return f"mysql-bin.{number:06}"


@dataclass(frozen=True)
class Opening:
    """What opens a file, and can be sent to another process."""

    data: bytes

    def __call__(self) -> MemoryFile:
        return MemoryFile(self.data)


def file_of(number: int, data: bytes) -> LookedAtFile:
    return LookedAtFile(name_of(number), len(data), Opening(data))


def run_elsewhere(function: Callable[[_Task], _Result], tasks: Sequence[_Task]) -> Sequence[_Result]:
    """In an order of its own, and with nothing in common but what was sent."""
    made = {}
    for number in Random(1).sample(range(len(tasks)), len(tasks)):
        there, task = pickle.loads(pickle.dumps((function, tasks[number])))
        made[number] = pickle.loads(pickle.dumps(there(task)))
    return [made[number] for number in range(len(tasks))]


class Mixed(KeyedBinlog):
    """With definitions in each file that the next ones need, and groups that hang on what is known of engines."""

    def more(self, chance: Random, number: int) -> None:
        """Some of them."""
        name = chance.choice(("a", "b", "keyless", "other"))
        for text in chance.choice(
            (
                (f"ALTER TABLE {name} ENGINE={chance.choice(('MyISAM', 'InnoDB'))}",),
                (f"ALTER TABLE {name} ADD INDEX i{number} (id)",),
                (f"CREATE TABLE other{number} LIKE {name}", f"INSERT INTO other{number} SELECT * FROM {name}"),
                (
                    f"DROP TABLE IF EXISTS {name}",
                    f"CREATE TABLE {name} (id INT PRIMARY KEY, other INT, filler LONGBLOB)",
                ),
                ("CREATE TEMPORARY TABLE temporary (id INT) ENGINE=MyISAM", f"REPLACE INTO {name} VALUES (1)"),
                (f"RENAME TABLE {name} TO moved, moved TO {name}",),
                (f"GRANT ALL ON *.* TO somebody{number}",),
            )
        ):
            self._statement(text)

    def _in_statements(self) -> None:
        super()._in_statements()
        self.more(Random(len(self.starts)), len(self.starts))


def files_of(seed: int, count: int = 5, groups: int = 700) -> list[LookedAtFile]:
    return [
        file_of(number, Mixed(seed + number, groups, begins=number == 1, large=number == 3).make())
        for number in range(1, count + 1)
    ]


def recorded() -> list[Line]:
    """A table that no statement tells of: it is there before the first file."""
    columns = (Column("id", "int(11)"), Column("other", "int(11)"), Column("filler", "longblob"))
    known = Table("d", "keyless", "InnoDB", columns, (("u", whole_key(["id"], True)),), foreign_keys=())
    told = [line("watched", name_of(1), 4, statements=True), table_line(table_facts(known), name_of(1), 300)]
    return list(parse_lines("".join(told).encode()))


def in_order(files: Sequence[LookedAtFile], lines: Sequence[Line]) -> WaitCounts:
    """As `view check` says it."""
    tables = PlannedTables(parse_lines("".join(taken_lines(list(lines), files[0].name, (1, 4))).encode()))
    return find_stops([replace(file, tables=tables) for file in files], WANTED).waits


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("lines", [[], recorded()], ids=["unrecorded", "recorded"])
def test_the_counts_are_those_of_a_view_that_goes_over_all_in_order(
    seed: int, lines: list[Line], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = files_of(seed * 10)
    expected = in_order(files, lines)
    found = find_waits(files, WANTED, lines, run=run_elsewhere)
    assert found.waits.record() == expected.record() and not found.unread
    assert len({why for why, _table in expected.serial}) >= 3 and (expected.beside or lines)
    monkeypatch.setattr(dry_run_waits, "_AT_ONCE", 2)
    monkeypatch.setattr(dry_run_waits, "_MOST_PARTS", 5)
    monkeypatch.setattr(planned_tables, "_LEAST_GONE", 1)
    assert find_waits(files, WANTED, lines).waits.record() == expected.record()
    last = find_waits(files, WANTED, lines, is_wanted=lambda file: file is files[-1]).waits
    assert 0 < last.groups < expected.groups / 3
    assert last.beside + sum(last.serial.values()) == last.groups - 1


async def test_the_counts_are_those_of_the_view(tmp_path: Path) -> None:
    data = [KeyedBinlog(20 + number, 900, 300, begins=number == 1).make() for number in (1, 2, 3)]
    await fill(tmp_path, *((name_of(number), one) for number, one in enumerate(data, 1)))
    mirror = await Archive.open(tmp_path)
    async with made_view(mirror, WANTED) as view:
        await until_made(view)
        made = view.status.waits
    await mirror.close()
    found = find_waits([file_of(number, one) for number, one in enumerate(data, 1)], WANTED, [], run=run_elsewhere)
    assert made is not None and found.waits.record() == made.record()
    assert made.width > 1.5


def test_a_servers_own_files_have_the_counts_of_the_archive() -> None:
    made = [Mixed(70 + number, 700, begins=number == 1) for number in (1, 2, 3)]
    archived = [file_of(number, one.make()) for number, one in enumerate(made, 1)]
    own = [file_of(number, b"\xfebin" + bytes(one.stream.data)) for number, one in enumerate(made, 1)]
    assert own[0].open().read() != archived[0].open().read()  # type: ignore[attr-defined]
    assert find_waits(own, WANTED, [], run=run_elsewhere).waits == find_waits(archived, WANTED, []).waits


def test_what_cannot_be_read_is_told_once_and_the_rest_is_counted() -> None:
    files = files_of(90, 4)
    damaged = bytearray(files[1].open().read())  # type: ignore[attr-defined]
    damaged[len(damaged) // 2] ^= 1
    found = find_waits(
        [files[0], file_of(2, bytes(damaged)), file_of(3, b"no binlog at all" * 9), files[3]],
        WANTED,
        [],
        run=run_elsewhere,
    )
    assert [part.file for part in found.unread] == [name_of(2), name_of(3)]
    alone = [find_waits(files, WANTED, [], is_wanted=one.__eq__).waits for one in files]
    assert alone[0].groups + alone[3].groups < found.waits.groups < sum(one.groups for one in alone)


def test_no_files_have_no_counts() -> None:
    assert find_waits([], WANTED, []).waits.groups == 0
