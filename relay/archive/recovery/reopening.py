"""Making an archive's newest file sound again after a write has failed, while readers continue."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from relay.archive.catalog.catalog_rows import LedgerRow
from relay.archive.recovery.file_recovery import recover_file
from relay.archive.storage.archive_errors import ArchiveCorrupt
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.files import FileLayer, write_again


def recover_again(
    directory: Path,
    layer: FileLayer,
    file: ArchivedFile,
    received: int,
    synced: int,
    record: Callable[[list[LedgerRow]], None],
) -> ArchivedFile:
    """Recover the open `file`, of which `received` bytes were written; what was not `synced` is written again. Blocking.

    `file` itself stays as it is: it is the event loop's; the copy that is returned describes the disk. `record(rows)` puts what is
    cut off into the ledger, durably on its return, before it is cut off. Raises: ArchiveCorrupt when published bytes are damaged;
    OSError; what `record` raises.
    """
    scratch = replace(file, end=received)
    findings: list[LedgerRow] = []

    def find(kind: str, name: str, offset: int, text: str) -> None:
        findings.append(LedgerRow(time.time(), kind, name, offset, text))

    recover_file(directory, layer, scratch, newest=True, find=find, record=lambda: record(findings))
    if scratch.end < file.end:
        raise ArchiveCorrupt(
            f"{file.end} bytes were published, {scratch.end} can be read",
            file=file.name,
            offset=scratch.end,
            advice="Check the disk, stop the relay, run `archive rebuild` and start it: the source sends the rest again.",
        )
    write_again(layer, directory / file.name, synced, scratch.end)
    return scratch
