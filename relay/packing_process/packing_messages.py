"""The messages between relay and packing process, over a socket that no other process has.

order    u32 size | JSON; with it the descriptors of the binlog, the new file, and NAME.idx if there is one
answer   u32 size | JSON: {"made": …}, {"failed": …}, {"system": …} or {"fault": …}
"""

import base64
import json
import socket
import struct
from typing import Any, Final

from relay.packed.key_ring import KeyRing
from relay.packed.packed_facts import OfArchive
from relay.packed.packing import PackOptions
from relay.packing_process.packed_copy import CopyFailed, CopyFiles, CopyOrder, PackedCopy

_SIZE: Final = struct.Struct("<I")
_MOST_FILES: Final = 3


def send_order(link: socket.socket, order: CopyOrder, keys: KeyRing | None, files: CopyFiles) -> None:
    """Send the order with the keys: they are in no file, environment or command line of the other process. Raises: OSError."""
    told: dict[str, Any] = {
        "file": order.file,
        "start": order.start,
        "end": order.end,
        "digest": order.digest,
        "pauses_s": order.pauses_s,
        "level": order.options.level,
        "frame_bytes": order.options.frame_bytes,
        "of": order.of,
    }
    if keys is not None:
        told["keys"] = {name: base64.b64encode(key).decode() for name, key in keys.for_own_process().items()}
        told["active"] = keys.active
    message = _framed(told)
    fds = [files.plain, files.packed, *([files.index] if files.index >= 0 else [])]
    sent = socket.send_fds(link, [message], fds)
    link.sendall(message[sent:])


def receive_order(link: socket.socket) -> tuple[CopyOrder, KeyRing | None, CopyFiles] | None:
    """Return an order; None: the relay ended. The caller closes the files. Raises: OSError."""
    head, fds, _flags, _address = socket.recv_fds(link, _SIZE.size, _MOST_FILES)
    text = _received(link, *_SIZE.unpack(head)) if len(head) == _SIZE.size else None
    if text is None:
        return None
    told = json.loads(text)
    options = PackOptions(level=told["level"], frame_bytes=told["frame_bytes"])
    keys = None
    if "keys" in told:
        keys = KeyRing({name: base64.b64decode(key) for name, key in told["keys"].items()}, told["active"])
    plain, packed, *index = fds
    whose = OfArchive(*told["of"])
    order = CopyOrder(told["file"], told["end"], told["digest"], options, told["pauses_s"], told["start"], whose)
    return order, keys, CopyFiles(plain, index[0] if index else -1, packed)


def send_made(link: socket.socket, copy: PackedCopy, paused_s: float) -> None:
    """Report that the copy is there. Raises: OSError."""
    made = [copy.plain_digest, copy.packed_digest, copy.stored_bytes, copy.end_digest]
    link.sendall(_framed({"made": [*made, round(paused_s, 3)]}))


def send_failure(link: socket.socket, error: CopyFailed | OSError | str) -> None:
    """Report that it is not; a text is of an internal fault, with its traceback. Raises: OSError."""
    if isinstance(error, CopyFailed):
        told: dict[str, Any] = {"failed": [error.what, error.advice], "of_binlog": error.of_binlog}
    elif isinstance(error, OSError):
        told = {"system": [error.errno, error.strerror or str(error)]}
    else:
        told = {"fault": error}
    link.sendall(_framed(told))


def receive_copy(link: socket.socket) -> PackedCopy | None:
    """Return the copy; None: the process ended. Raises: CopyFailed, OSError, RuntimeError: as they were reported."""
    head = _received(link, _SIZE.size)
    text = None if head is None else _received(link, *_SIZE.unpack(head))
    if text is None:
        return None
    told = json.loads(text)
    if "failed" in told:
        raise CopyFailed(*told["failed"], of_binlog=told["of_binlog"])
    if "system" in told:
        raise OSError(*told["system"])
    if "fault" in told:
        raise RuntimeError(f"the process that packs: {told['fault']}")
    return PackedCopy(*told["made"])


def _framed(told: dict[str, Any]) -> bytes:
    text = json.dumps(told).encode()
    return _SIZE.pack(len(text)) + text


def _received(link: socket.socket, count: int) -> bytes | None:
    data = b""
    while len(data) < count:
        more = link.recv(count - len(data))
        if not more:
            return None
        data += more
    return data
