"""An archive of very many tiny files, made without receiving each: a real newest file, and copies of one before it."""

import asyncio
import os
from pathlib import Path

from protocol.gtid.gtid_set import GtidSet
from relay.archive.catalog.catalog import Catalog
from relay.archive.storage.archived_file import ArchivedFile, describe_new_file
from relay.archive.storage.files import CATALOG_NAME, GTX_SUFFIX, IDX_SUFFIX, INDEX_NAME, FileLayer
from relay.archive.storage.gtid_facts import GtidChain, GtidFacts
from tests.support.archive_filling import fill
from tests.support.generation_filling import A, mysql_series
from tests.support.gtid_binlog import add_mysql, mysql_binlog


def fill_with_many(directory: Path, count: int) -> None:
    """Make `count` files with a transaction each, all but the newest sealed and with their digests."""
    name, data = mysql_series(count, f"{A}:{count}", start=f"{A}:1-{count - 1}")[0]
    asyncio.run(fill(directory, (name, data)))
    one = mysql_binlog(GtidSet())
    add_mysql(one, next(iter(GtidSet.from_text(f"{A}:1").members())))
    sidecars = {
        suffix: (directory / (name + suffix)).read_bytes()
        for suffix in (IDX_SUFFIX, GTX_SUFFIX)
        if (directory / (name + suffix)).exists()
    }
    files, entries, chain = [], [], GtidChain()
    template = describe_new_file("mysql-bin.000001", bytes(one.data[4:]))
    for number in range(1, count):
        file = describe_new_file("mysql-bin.000001", bytes(one.data[4:])) if number == 1 else _copy(template)
        file.name, file.number = f"mysql-bin.{number:06d}", number
        file.end, file.sealed, file.events, file.groups, file.digest = len(one.data), True, 5, 1, "crc32:00000000"
        files.append(file)
        before = GtidSet.from_text(f"{A}:1-{number - 1}") if number > 1 else GtidSet()
        facts = GtidFacts(before, GtidSet.from_text(f"{A}:{number}"), 0)
        entries.append(chain.entry(number, facts))
        chain.add(number, facts)
        path = directory / file.name
        _write(path, bytes(one.data))
        for suffix, content in sidecars.items():
            _write(path.with_name(path.name + suffix), content)
    catalog = Catalog.open(directory / CATALOG_NAME, FileLayer())
    try:
        catalog.put_files(files, entries)
    finally:
        catalog.close()
    names = [*(file.name for file in files), name]
    (directory / INDEX_NAME).write_text("".join(f"./{one}\n" for one in names))


def _copy(file: ArchivedFile) -> ArchivedFile:
    return type(file)(**{name: getattr(file, name) for name in type(file).__slots__})


def _write(path: Path, content: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o640)
    try:
        os.write(fd, content)
    finally:
        os.close(fd)
