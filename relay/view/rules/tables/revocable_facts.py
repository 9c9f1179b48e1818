"""What is learned from a transaction that may turn out not to count: it can be taken back."""

from abc import ABC, abstractmethod
from typing import Any

_Change = tuple[dict[Any, Any], Any, Any]


class RevocableFacts(ABC):
    """Facts in dictionaries, which change in `_set` alone."""

    def __init__(self) -> None:
        self._journal: list[_Change] | None = None
        """By dictionary and key what was there before; None: nothing can be taken back."""

    def begin(self) -> None:
        """From here on what is learned can be taken back."""
        self._journal = []

    def keep(self) -> None:
        """What was learned stays."""
        self._journal = None

    def take_back(self) -> None:
        """What was learned since `begin` is forgotten."""
        journal, self._journal = self._journal or [], None
        for which, key, before in reversed(journal):
            self._set(which, key, before)

    @abstractmethod
    def _set(self, which: dict[Any, Any], key: Any, value: Any) -> None:
        """The only place where anything changes, told to `_note` first; None: it goes."""

    def _note(self, which: dict[Any, Any], key: Any, before: Any) -> None:
        if self._journal is not None:
            self._journal.append((which, key, before))
