"""AES-256-GCM of a packed file: each frame by itself, bound to its place in its file, and to the file's place in its archive.

    head   8 bytes magic | u32 size | JSON: key id, the wrapped data key, the file's id (16 random bytes), whose file it is
    body   the frames, then the end (the binlog's facts and the frame table), each encrypted by itself
    tail   the head's JSON again | u32 its size | u64 size of the encrypted table | 8 bytes magic

A data key is used for one file and never again, and a nonce is the kind and index of what is encrypted: none comes twice under one
key. Kind, index, the file's id, and its archive, generation and binlog are authenticated with the bytes, and the table has the size
and number of all frames: one that is moved, left out, doubled or taken from another file is found, and so is a file of another
archive or generation.
"""

import base64
import hashlib
import json
import secrets
import struct
from typing import Any, Final

from relay.packed.key_ring import KEY_BYTES, KeyRing, sealing
from relay.packed.packed_errors import KEYS_ADVICE, KeyMissing, PackedDamaged, PackedUnknown
from relay.packed.packed_facts import OfArchive, other_format

HEAD_MAGIC: Final = b"BLRENC\x00\x02"
TAIL_MAGIC: Final = b"BLRENC\xff\x02"
TAG_BYTES: Final = 16
_SIZE: Final = struct.Struct("<I")
_TAIL: Final = struct.Struct("<IQ8s")
TAIL_SIZE: Final = _TAIL.size
_NONCE: Final = struct.Struct(">IQ")
_FRAME: Final = 1
_TABLE: Final = 2
_FILE_ID_BYTES: Final = 16
LARGEST_HEAD: Final = 4096


class FileCipher:
    """Encrypts and decrypts the parts of one file. Thread-safe."""

    def __init__(self, key_id: str, head: bytes, file_id: bytes, data_key: bytes, bound: bytes) -> None:
        self.key_id = key_id
        self._head = head
        self._bound = file_id + bound
        self._sealing: Any = sealing(data_key)

    @classmethod
    def new(cls, ring: KeyRing, file: str, of: OfArchive) -> "FileCipher":
        """Return the cipher for a new file with the binlog `file`, with the ring's active key."""
        key_id = ring.active
        assert key_id is not None
        file_id, data_key = secrets.token_bytes(_FILE_ID_BYTES), secrets.token_bytes(KEY_BYTES)
        bound = _bound(file, of.archive, of.generation)
        wrapped = ring.wrap(key_id, data_key, _wrap_bound(key_id, file_id, bound))
        told = {"key": key_id, "wrapped": _text(wrapped), "id": _text(file_id)}
        whose = {"file": file, "archive": of.archive, "generation": of.generation}
        return cls(key_id, json.dumps({**told, **whose}).encode(), file_id, data_key, bound)

    @classmethod
    def of_head(cls, head: bytes, ring: KeyRing | None, file: str) -> "FileCipher":
        """Return the cipher for a file that has this head. Raises: PackedDamaged, KeyMissing, KeyWrong."""
        try:
            found = json.loads(head)
            key_id = found["key"]
            wrapped, file_id = base64.b64decode(found["wrapped"]), base64.b64decode(found["id"])
            named, archive, generation = found["file"], found["archive"], found["generation"]
            if not isinstance(key_id, str) or not isinstance(named, str) or not isinstance(archive, str):
                raise TypeError
        except (ValueError, KeyError, TypeError, RecursionError):
            raise PackedDamaged("its head cannot be read", file=file, offset=0) from None
        if named != file:
            raise PackedDamaged(f"the binlog in it is {named}", file=file, offset=0)
        if ring is None:
            raise KeyMissing(
                f"it is encrypted with the key {key_id!r}; no keys were given", file=file, advice=KEYS_ADVICE
            )
        bound = _bound(named, archive, generation)
        data_key = ring.unwrap(key_id, wrapped, _wrap_bound(key_id, file_id, bound), file)
        return cls(key_id, head, file_id, data_key, bound)

    @property
    def head(self) -> bytes:
        """The beginning of the file."""
        return HEAD_MAGIC + _SIZE.pack(len(self._head)) + self._head

    def tail(self, table_size: int) -> bytes:
        """Return the end of the file. `table_size`: of the encrypted table."""
        return self._head + _TAIL.pack(len(self._head), table_size, TAIL_MAGIC)

    def encrypt_frame(self, index: int, data: bytes) -> bytes:
        """Encrypt a frame, once for each index. The result is `TAG_BYTES` longer than `data`."""
        return self._encrypt(_FRAME, index, data)

    def decrypt_frame(self, index: int, data: bytes) -> bytes | None:
        """Decrypt a frame; None: it is not what was encrypted as this frame of this file."""
        return self._decrypt(_FRAME, index, data)

    def encrypt_table(self, data: bytes) -> bytes:
        """Encrypt the table, once."""
        return self._encrypt(_TABLE, 0, data)

    def decrypt_table(self, data: bytes) -> bytes | None:
        """Decrypt the table; None: it is not this file's."""
        return self._decrypt(_TABLE, 0, data)

    def _encrypt(self, kind: int, index: int, data: bytes) -> bytes:
        nonce = _NONCE.pack(kind, index)
        return bytes(self._sealing.encrypt(nonce, data, nonce + self._bound))

    def _decrypt(self, kind: int, index: int, data: bytes) -> bytes | None:
        from cryptography.exceptions import InvalidTag

        nonce = _NONCE.pack(kind, index)
        try:
            return bytes(self._sealing.decrypt(nonce, data, nonce + self._bound))
        except (InvalidTag, ValueError):
            return None

    def __repr__(self) -> str:
        return f"FileCipher(key_id={self.key_id!r})"


def split_tail(tail: bytes, stored_size: int, file: str) -> tuple[int, int]:
    """Return the size of the head, and of the encrypted table, from the last `TAIL_SIZE` bytes. Raises: PackedUnknown,
    PackedDamaged."""
    head_size, table_size, magic = _TAIL.unpack(tail)
    if magic != TAIL_MAGIC:
        if magic[:-1] == TAIL_MAGIC[:-1]:
            other = other_format(magic[-1])
            raise PackedUnknown(f"it is encrypted, and {other.what}", file=file, advice=other.advice)
        raise PackedDamaged("its end is not the end of an encrypted binlog", file=file, offset=stored_size - TAIL_SIZE)
    if head_size > LARGEST_HEAD or table_size > stored_size:
        raise PackedDamaged("the sizes at its end cannot be", file=file, offset=stored_size - TAIL_SIZE)
    return head_size, table_size


def head_size_on_disk(head_size: int) -> int:
    """Return the number of bytes before the first frame."""
    return len(HEAD_MAGIC) + _SIZE.size + head_size


def _bound(file: str, archive: str, generation: int) -> bytes:
    return hashlib.sha256(json.dumps([file, archive, generation]).encode()).digest()


def _wrap_bound(key_id: str, file_id: bytes, bound: bytes) -> bytes:
    return HEAD_MAGIC + file_id + bound + key_id.encode()


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
