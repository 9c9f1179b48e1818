"""What a view keeps of the source's tables, without what is told of purged binlogs: it says the same of all others, after any crash."""

import errno
import json
import os
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from protocol.sql.tables.ddl_parser import parse_ddl
from protocol.sql.tables.source_table import Column, ForeignKey, Table, TableName, whole_key
from relay.archive.storage.files import Buffer, FileLayer
from relay.schema_history.logged_definition import LoggedDefinition
from relay.schema_history.schema_facts import Place
from relay.schema_history.schema_record import line, parse_lines, table_line
from relay.source_tables import table_book
from relay.source_tables.applied_definition import DefiningSession, apply_definition
from relay.source_tables.table_book import SourceTables
from relay.source_tables.table_facts import table_facts
from relay.view.dependencies import planned_tables
from relay.view.dependencies.planned_tables import NEVER, PlannedTables, shortened, taken_lines
from relay.view.dependencies.tables_file import TablesFile, read_tables
from tests.support.forgetful_disk import ForgetfulDisk

SCHEMAS = ("d", "e", "D")
TABLES = ("a", "b", "c", "A")
COLUMNS = ("id", "n", "m", "ref")


def random_statement(chance: Random) -> str:
    """One that defines something, or that nobody understands."""
    name = f"{chance.choice(SCHEMAS)}.{chance.choice(TABLES)}"
    other = f"{chance.choice(SCHEMAS)}.{chance.choice(TABLES)}"
    column, new = chance.choice(COLUMNS), chance.choice(COLUMNS)
    key = f"FOREIGN KEY ({column}) REFERENCES {other} ({new}) {chance.choice(('', 'ON DELETE CASCADE', 'ON UPDATE SET NULL'))}"
    columns = "id INT PRIMARY KEY, n VARCHAR(20), m INT NOT NULL, ref INT, UNIQUE u (n(5), m)"
    return chance.choice(
        (
            f"CREATE TABLE {name} ({columns})",
            f"CREATE TABLE {name} ({columns}, CONSTRAINT f {key}) ENGINE=InnoDB",
            f"CREATE TABLE IF NOT EXISTS {name} ({columns}) ENGINE=MyISAM DEFAULT CHARSET=utf8",
            f"CREATE TABLE {name} LIKE {other}",
            f"CREATE TEMPORARY TABLE {name} (x INT)",
            f"DROP TEMPORARY TABLE {name}",
            f"DROP TABLE {name}",
            f"DROP TABLE IF EXISTS {name}, {other}",
            f"RENAME TABLE {name} TO {other}",
            f"ALTER TABLE {name} ADD {key}",
            f"ALTER TABLE {name} ADD INDEX i ({column}), DROP INDEX u",
            f"ALTER TABLE {name} DROP FOREIGN KEY f",
            f"ALTER TABLE {name} DROP PRIMARY KEY, ADD UNIQUE ({column})",
            f"ALTER TABLE {name} CHANGE {column} {new} BIGINT DEFAULT 5",
            f"ALTER TABLE {name} ADD COLUMN extra{chance.randrange(3)} VARCHAR(10)",
            f"ALTER TABLE {name} RENAME TO {other}",
            f"ALTER TABLE {name} CONVERT TO CHARACTER SET latin1",
            f"ALTER TABLE {name} MAKE IT BETTER",
            f"CREATE DATABASE {chance.choice(SCHEMAS)} CHARACTER SET utf8 COLLATE utf8_bin",
            f"CREATE DATABASE IF NOT EXISTS {chance.choice(SCHEMAS)}",
            f"ALTER DATABASE {chance.choice(SCHEMAS)} CHARACTER SET latin1",
            f"DROP DATABASE {chance.choice(SCHEMAS)}",
        )
    )


def define(tables: PlannedTables, chance: Random, place: Place) -> None:
    names = frozenset(name.lower() for name in (*SCHEMAS, *TABLES))
    made = LoggedDefinition(
        names, random_statement(chance), "d", thread_id=chance.randrange(3), error=int(chance.random() < 0.05),
        version="5.6.24-log", server_charset="latin1",
    )  # fmt: skip
    tables.define(file_name(place[0]), place, made)


def file_name(number: int) -> str:
    return f"mysql-bin.{number:06}"


def recorded_table(chance: Random) -> Table:
    """One as the source tells it when it is asked."""
    foreign = ForeignKey(("ref",), "d", chance.choice(TABLES), ("id",), "CASCADE")
    return Table(
        chance.choice(SCHEMAS),
        chance.choice(TABLES),
        "InnoDB",
        tuple(Column(name, "int(11)", nullable=name != "id") for name in COLUMNS),
        (("PRIMARY", whole_key(["id"], True)), ("ref", whole_key(["ref"]))),
        foreign_keys=chance.choice((None, (), (("f", foreign),))),
    )


def history(chance: Random, count: int) -> tuple[PlannedTables, list[str]]:
    """Definitions and answers of the source in files 10 to 29, and the lines that tell them; recorded was what is in file 9."""
    recorded = [line("watched", file_name(9), 4, statements=True)]
    recorded += [table_line(table_facts(recorded_table(chance)), file_name(9), 900) for _ in range(4)]
    recorded.append(line("database", file_name(9), 950, schema="e", charset="utf8", collation="utf8_general_ci"))
    lines = taken_lines(list(parse_lines("".join(recorded).encode())), file_name(9), (9, 4))
    tables = PlannedTables(parse_lines("".join(lines).encode()))
    for place in sorted({(chance.randrange(10, 30), chance.randrange(4, 5000)) for _ in range(count)}):
        if chance.random() < 0.05:
            lines.append(table_line(table_facts(recorded_table(chance)), file_name(place[0]), place[1]))
            tables = PlannedTables(parse_lines("".join(lines).encode()))
            continue
        define(tables, chance, place)
        lines += tables.unsaved
        tables.unsaved.clear()
    return tables, lines


def known_at(tables: PlannedTables, place: Place) -> list[object]:
    """All that plans are made of."""
    until = tables.move_to(place)
    keys: list[TableName] = [(schema, name) for schema in SCHEMAS for name in TABLES]
    found = [tables.table(key) for key in keys]
    generated = [[one.generated for _name, one in table.keys] for table in found if table is not None]
    return [until, tables.knows_all_references, found, generated, [list(tables.children(key)) for key in keys]]


@pytest.mark.parametrize("seed", range(25))
def test_behind_the_oldest_file_the_same_is_known_and_what_comes_later_makes_the_same_of_it(seed: int) -> None:
    chance = Random(seed)
    tables, lines = history(chance, 200)
    oldest = chance.randrange(10, 30)
    short = shortened(list(parse_lines("".join(lines).encode())), file_name(oldest), (oldest, 0))
    made = PlannedTables(parse_lines("".join(short).encode()))
    if chance.random() < 0.5:  # once more, further on
        oldest = chance.randrange(oldest, 31)
        short = shortened(list(parse_lines("".join(short).encode())), file_name(oldest), (oldest, 0))
        made = PlannedTables(parse_lines("".join(short).encode()))
    later = chance.getstate()
    for one in (tables, made):
        chance.setstate(later)
        for number in range(60):
            define(one, chance, (40, 100 + number))
    assert made.unsaved == tables.unsaved
    places = [(number, offset) for number in range(oldest, 31) for offset in (0, 4, 1500, 4999)]
    for place in [*places, *((40, 90 + number) for number in range(80)), (oldest, 4), (35, 4)]:
        assert known_at(made, place) == known_at(tables, place), place


def test_before_the_oldest_file_nothing_is_known() -> None:
    tables, lines = history(Random(5), 300)
    assert any(known_at(tables, (19, 4))[2])  # type: ignore[arg-type]
    made = PlannedTables(
        parse_lines("".join(shortened(list(parse_lines("".join(lines).encode())), file_name(20), (20, 0))).encode())
    )
    assert made.move_to((19, 4)) == NEVER
    assert not any(known_at(made, (19, 4))[2])  # type: ignore[arg-type]
    assert known_at(made, (20, 4)) == known_at(tables, (20, 4))


def kept_file(directory: Path, lines: Sequence[str], layer: FileLayer) -> TablesFile:
    made = directory / "views" / "v"
    made.mkdir(parents=True)
    file = TablesFile(made, "v", directory, layer)
    file.path.write_text("".join(lines))
    return file


def test_the_file_stays_as_long_as_what_is_kept_in_the_archive(tmp_path: Path) -> None:
    """A table a day is made and dropped, and a day's binlogs are purged each day."""
    file = kept_file(tmp_path, [line("taken", file_name(1), 4)], FileLayer())
    tables = file.open(file_name(1), (1, 4))
    sizes = []
    for day in range(1, 800):
        for offset, text in (
            (100, f"CREATE TABLE d.day{day} (id INT PRIMARY KEY)"),
            (200, f"DROP TABLE d.day{day - 1}"),
        ):
            tables.define(file_name(day), (day, offset), LoggedDefinition(frozenset((f"day{day}",)), text, "d"))
        file.save(tables)
        tables = file.without_purged(tables, file_name(max(1, day - 10)))
        sizes.append(len(file.path.read_text().splitlines()))
    assert max(sizes) < 400
    tables.move_to((799, 150))
    assert [tables.table(("d", f"day{day}")) is not None for day in (797, 798, 799)] == [False, True, True]


def test_names_of_tables_that_are_gone_do_not_become_ever_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_book, "_MOST_NAMES", 50)
    state = SourceTables()
    for number in range(500):
        for text in (f"CREATE TABLE d.t{number} (id INT)", f"DROP TABLE d.t{number}"):
            apply_definition(state, parse_ddl(text, "d", 0, "5.6.24"), DefiningSession())
        assert len(json.loads(state.state() or b'{"absent": []}')["absent"]) <= 51
    assert not list(state.tables())


class TornDisk(ForgetfulDisk):
    """Takes so many bytes, then so many more calls, and then nothing at all: the machine has lost its power."""

    def __init__(self, room_bytes: int | None = None, calls: int | None = None) -> None:
        super().__init__()
        self.room_bytes = room_bytes
        self.calls = calls

    def _step(self) -> None:
        if self.calls is not None:
            if not self.calls:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            self.calls -= 1

    def create(self, path: Path) -> int:
        self._step()
        return super().create(path)

    def pwritev(self, fd: int, buffers: Sequence[Buffer], offset: int) -> int:
        self._step()
        return super().pwritev(fd, buffers, offset)

    def sync_data(self, fd: int) -> None:
        self._step()
        super().sync_data(fd)

    def rename(self, source: Path, target: Path) -> None:
        self._step()
        super().rename(source, target)

    def sync_directory(self, directory: Path) -> None:
        self._step()
        super().sync_directory(directory)


def shorten_on(disk: TornDisk, directory: Path, lines: Sequence[str], *, room: int | None, calls: int | None) -> bool:
    """Whether the file was shortened before the power went; what is left of the directory is in `left`."""
    file = kept_file(directory, lines, disk)
    whole = file.path.read_bytes()
    disk.synced[file.path.stat().st_ino] = whole
    disk.sync_directory(file.path.parent)
    disk.room_bytes, disk.calls = room, calls
    tables = read_tables(directory / "views" / "v", "v")
    is_done = True
    try:
        file.without_purged(tables, file_name(20))
    except OSError:
        is_done = False
    survivor = directory / "left"
    disk.lose_power(directory / "views", survivor, 3)
    return is_done


def test_a_power_cut_at_any_byte_leaves_what_says_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planned_tables, "_LEAST_GONE", 3)
    tables, lines = history(Random(11), 40)
    places = ((20, 4), (30, 4))
    expected = [known_at(tables, place) for place in places]
    size = len("".join(shortened(list(parse_lines("".join(lines).encode())), file_name(20), (20, 0))).encode())
    cuts: list[tuple[int | None, int | None]] = [(room, None) for room in range(0, size, size // 40)]
    cuts += [(room, None) for room in range(size - 3, size + 2)] + [(None, calls) for calls in range(7)]
    done = []
    for number, (room, calls) in enumerate(cuts):
        directory = tmp_path / str(number)
        directory.mkdir()
        done.append(shorten_on(TornDisk(), directory, lines, room=room, calls=calls))
        data = (directory / "left" / "v.tables.jsonl").read_bytes()
        left = PlannedTables(parse_lines(data))
        assert [known_at(left, place) for place in places] == expected, (room, calls)
        assert (data == "".join(lines).encode()) or data.startswith(b'{"kind": "state"')
        live = read_tables(directory / "views" / "v", "v")
        assert [known_at(live, place) for place in places] == expected, (room, calls)
    assert True in done and False in done
