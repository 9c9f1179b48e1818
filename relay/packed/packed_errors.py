"""The errors of packed files and of the keys of encrypted ones: what, where, the next step."""

from typing import Final

from protocol.errors import ExitCode, RelayError

KEYS_ADVICE: Final = "Look at [[archive.encryption.key]] in relay.toml: keys of files that exist must stay there."


class PackedError(RelayError):
    """Base of the errors of packed binlogs. `file`: the binlog's name. `offset`: in the packed file."""

    exit_code = ExitCode.ARCHIVE_DAMAGED
    full_stop = "."

    def __init__(self, what: str, *, file: str, offset: int | None = None, advice: str = "") -> None:
        super().__init__(what, advice, file=file, offset=offset)
        self.text = f"{what} ({file}, packed" + (f", offset {offset})" if offset is not None else ")")


class PackedDamaged(PackedError):
    """The bytes are not what was packed."""


class PackedUnknown(PackedError):
    """It is no packed binlog, or one of a newer version."""


class KeyMissing(PackedError):
    """The file is encrypted with a key that was not given."""

    exit_code = ExitCode.WRONG_USE


class KeyWrong(PackedError):
    """The key of that name is another one than the file was encrypted with, or the head of the file was changed."""

    exit_code = ExitCode.WRONG_USE


class KeyUnreadable(RelayError):
    """A key cannot be read from its origin. The text never has any of the key."""

    exit_code = ExitCode.WRONG_USE
