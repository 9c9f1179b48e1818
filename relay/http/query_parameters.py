"""The parameters of a request, each within its bounds."""

from collections.abc import Mapping
from typing import Final

from protocol.errors import RelayError

LARGEST: Final = 2**63 - 1
_LONGEST_SHOWN: Final = 40


class Unanswerable(RelayError):
    """A request that gets an error. status: of HTTP; code: a word for programs; what: for people. `cause`: the error to report."""

    def __init__(self, status: int, code: str, what: str = "", *, cause: RelayError | None = None) -> None:
        if cause is None:
            super().__init__(what)
        else:
            super().__init__(cause.what, cause.advice, file=cause.file, offset=cause.offset)
        self.status = status
        self.code = code


class QueryParameters:
    """values: by name, as they came. allowed: the parameters that may occur. Raises: Unanswerable for others."""

    def __init__(self, values: Mapping[str, str], allowed: tuple[str, ...]) -> None:
        self._values = values
        unknown = sorted(values.keys() - set(allowed))
        if unknown:
            known = ", ".join(allowed) or "none"
            raise Unanswerable(
                400, "parameter_unknown", f"{unknown[0][:_LONGEST_SHOWN]!r} is no parameter here; there are: {known}"
            )

    def whole(self, name: str, default: int | None, least: int, most: int = LARGEST) -> int:
        """Return a whole number. default: None: it must be given. Raises: Unanswerable."""
        text = self._values.get(name)
        if text is None:
            if default is None:
                raise Unanswerable(400, "parameter_missing", f"{name} must be given")
            return default
        number = int(text) if text.isascii() and text.isdigit() and len(text) <= 19 else -1
        if not least <= number <= most:
            raise Unanswerable(400, "parameter_wrong", f"{name} must be a whole number from {least} to {most}")
        return number

    def word(self, name: str, default: str, words: tuple[str, ...]) -> str:
        """Return one of a few words. Raises: Unanswerable."""
        text = self._values.get(name, default)
        if text not in words:
            raise Unanswerable(400, "parameter_wrong", f"{name} must be one of {', '.join(words)}")
        return text

    def text(self, name: str, most: int) -> str:
        """Return a text that is not empty. Raises: Unanswerable."""
        text = self._values.get(name, "")
        if not text or len(text) > most:
            raise Unanswerable(400, "parameter_missing", f"{name} must be given, with at most {most} characters")
        return text
