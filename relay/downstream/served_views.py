"""The views that accounts are served, by name, and those that are not open yet."""

from typing import NamedTuple, Protocol

from relay.downstream.connection.replica_session import StatementAnswers
from relay.downstream.served_archive import ServedArchive


class AwaitedView(Protocol):
    """A view that is not open."""

    @property
    def told(self) -> str:
        """The reason, as it is now."""


class _Awaited(NamedTuple):
    view: AwaitedView
    answers: StatementAnswers | None


class ServedViews:
    """Views as they become ready; none is removed again. On the event loop only."""

    def __init__(self) -> None:
        self._served: dict[str, ServedArchive] = {}
        self._awaited: dict[str, _Awaited] = {}

    def add(self, name: str, served: ServedArchive) -> None:
        """Serve it from now on."""
        served.begin()
        self._served[name] = served

    def add_awaited(self, name: str, view: AwaitedView, answers: StatementAnswers | None = None) -> None:
        """Register a view that is not served yet, with the reason for accounts that want it. answers: answers statements of people
        who log in meanwhile; None: they cannot.
        """
        self._awaited[name] = _Awaited(view, answers)

    def answers(self, name: str) -> StatementAnswers | None:
        """Return what answers statements of an account whose view is not served; None: nothing."""
        awaited = self._awaited.get(name)
        return awaited.answers if awaited is not None else None

    def find(self, name: str) -> ServedArchive | None:
        """Return the view; None: it is not served now."""
        return self._served.get(name)

    def why_not(self, name: str) -> str:
        """Return the reason why it is not served."""
        awaited = self._awaited.get(name)
        known = "relay.toml had no such view when the relay was started: restart it"
        return awaited.view.told if awaited is not None else known

    def rest(self) -> None:
        """Stop waking the streams of all views."""
        for served in self._served.values():
            served.rest()

    def close(self) -> None:
        """End the threads, once no replica is served."""
        for served in self._served.values():
            served.close()
