"""Events about a file that LOAD DATA sends: Begin_load_query, Append_block, Exec_load, Delete_file."""

from dataclasses import dataclass

from protocol.binlog.fields import Fields


@dataclass(frozen=True, slots=True)
class FileBlock:
    """The file's number on its source, and how many of its bytes come with the event."""

    file_id: int
    block_bytes: int


def decode_file_block(body: bytes) -> FileBlock:
    """Decode Begin_load_query (17), Append_block (9), Exec_load (10) or Delete_file (11): file_id u32 | block.

    Raises: Truncated.
    """
    fields = Fields(body)
    return FileBlock(fields.u32(), fields.remaining)
