"""The errors of packed files and of the keys of encrypted ones: what, where, the next step."""

from typing import Final

KEYS_ADVICE: Final = "Look at [[archive.encryption.key]] in relay.toml: keys of files that exist must stay there."


class PackedError(Exception):
    """`str()` is one sentence for an operator, and the advice.

    Fields: `what` (the finding), `file` (the binlog's name), `offset` (in the packed file, or None), `text` (the finding with
    its place), `advice` (may be empty). No field has a secret.
    """

    def __init__(self, what: str, *, file: str, offset: int | None = None, advice: str = "") -> None:
        self.what = what
        self.file = file
        self.offset = offset
        self.advice = advice
        self.text = f"{what} ({file}, packed" + (f", offset {offset})" if offset is not None else ")")
        super().__init__(f"{self.text}." + (f" {advice}" if advice else ""))

    def __reduce__(self) -> tuple[object, ...]:
        # Spark's executors send their errors to the driver.
        return _again, (type(self), self.what, self.file, self.offset, self.advice)


class PackedDamaged(PackedError):
    """The bytes are not what was packed."""


class PackedUnknown(PackedError):
    """It is no packed binlog, or one of a newer version."""


class KeyMissing(PackedError):
    """The file is encrypted with a key that was not given."""


class KeyWrong(PackedError):
    """The key of that name is another one than the file was encrypted with, or the head of the file was changed."""


class KeyUnreadable(Exception):
    """A key cannot be read from its origin. The text never has any of the key."""


def _again(kind: type[PackedError], what: str, file: str, offset: int | None, advice: str) -> PackedError:
    return kind(what, file=file, offset=offset, advice=advice)
