"""The views that accounts are served, by name."""

from relay.downstream.served_archive import ServedArchive


class ServedViews:
    """Views as they become ready; none goes away again. On the event loop only."""

    def __init__(self) -> None:
        self._served: dict[str, ServedArchive] = {}
        self._why_not: dict[str, str] = {}

    def add(self, name: str, served: ServedArchive) -> None:
        """It is served from now on."""
        served.begin()
        self._served[name] = served

    def say_why_not(self, name: str, why: str) -> None:
        """What accounts are told that want this view, as long as it is not served; one sentence."""
        self._why_not[name] = why

    def find(self, name: str) -> ServedArchive | None:
        """None: it is not served now."""
        return self._served.get(name)

    def why_not(self, name: str) -> str:
        """Why it is not served."""
        return self._why_not.get(name, "relay.toml had no such view when the relay was started: restart it")

    def rest(self) -> None:
        """Tells nobody any more that there is more."""
        for served in self._served.values():
            served.rest()

    def close(self) -> None:
        """Ends the threads, once nobody is served."""
        for served in self._served.values():
            served.close()
