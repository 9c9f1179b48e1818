"""A source's archive and a view of it with very many tiny files, made without receiving each."""

from pathlib import Path

from protocol.binlog.layout import MAGIC
from relay.archive.catalog.catalog import Catalog
from relay.archive.storage.archived_file import describe_new_file
from relay.archive.storage.files import CATALOG_NAME, INDEX_NAME, FileLayer
from relay.view.rules.kept_settings import view_directory
from relay.view.rules.settings import ViewSettings
from relay.view.translation import FileTranslation
from relay.view.view_checkpoint import ViewCheckpoint
from relay.view.view_map import MapWriter
from relay.view.view_rules import rules_of
from tests.support.gtid_binlog import add_mysql, mysql_binlog


def fill_many_with_view(archive: Path, settings: ViewSettings, count: int, transactions: int = 3) -> list[int]:
    """Return the offsets after a file's head and each of its transactions, which are those of all files."""
    view = view_directory(archive, settings.name)
    view.mkdir(parents=True)
    binlog = mysql_binlog(None)
    offsets = [binlog.size]
    for _ in range(transactions):
        add_mysql(binlog, None)
        offsets.append(binlog.size)
    data = bytes(binlog.data)
    checkpoint = ViewCheckpoint.of_file(1, b"")
    for directory in (archive, view):
        Catalog.open(directory / CATALOG_NAME, FileLayer()).close()
    rows: dict[Path, list[object]] = {archive: [], view: []}
    out = bytearray(1 << 20)
    for number in range(1, count + 1):
        name = f"mysql-bin.{number:06d}"
        made, after = _translated(name, data, settings, checkpoint, out, view)
        checkpoint = ViewCheckpoint.of_file(after.next_gno, after.rules)
        for directory, content in ((archive, data), (view, made)):
            (directory / name).write_bytes(content)
            for suffix in (".idx", ".gtx"):
                (directory / (name + suffix)).touch()
            file = describe_new_file(name, content[4:])
            file.end, file.sealed, file.groups = len(content), number < count, transactions
            rows[directory].append(file)
    for directory, files in rows.items():
        catalog = Catalog.open(directory / CATALOG_NAME, FileLayer())
        catalog.put_files(files)  # type: ignore[arg-type]
        catalog.close()
        (directory / INDEX_NAME).write_text("".join(f"./mysql-bin.{number:06d}\n" for number in range(1, count + 1)))
    return offsets


def _translated(
    name: str, data: bytes, settings: ViewSettings, checkpoint: ViewCheckpoint, out: bytearray, view: Path
) -> tuple[bytes, ViewCheckpoint]:
    def read_into(buffer: memoryview, offset: int) -> int:
        piece = data[offset : offset + len(buffer)]
        buffer[: len(piece)] = piece
        return len(piece)

    translation = FileTranslation(name, read_into, settings, rules_of(settings), checkpoint, {})
    made = bytearray(MAGIC)
    while count := translation.fill(out, 0, len(data), sealed=True):
        made += memoryview(out)[:count]
    writer = MapWriter(FileLayer(), view / name, checkpoint)
    writer.add(translation.marks)
    writer.close()
    return bytes(made), translation.checkpoint()
