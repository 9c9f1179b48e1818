"""The reason why a feed stops: a name, a place, what it means, what to do."""

from collections.abc import Mapping

from protocol.errors import ExitCode, RelayError


class FeedStop(RelayError):
    """The feed committed everything before `place` and nothing after it. `name` is in docs/FEED.md."""

    exit_code = ExitCode.FINDINGS

    def __init__(self, name: str, place: str, what: str, advice: str, table: str = "") -> None:
        of = f" table {table}" if table else ""
        super().__init__(what, advice)
        self.text = f"{name}: the feed stopped at {place}{of}. {what}"
        self.name = name
        self.place = place
        self.table = table

    def facts(self) -> dict[str, str]:
        """Return what `of_facts` takes, for a record in the lake."""
        return {"name": self.name, "place": self.place, "text": self.what, "advice": self.advice, "table": self.table}

    @classmethod
    def of_facts(cls, facts: Mapping[str, str]) -> "FeedStop":
        """Return the stop that was recorded."""
        return cls(facts["name"], facts["place"], facts["text"], facts["advice"], facts["table"])


SNAPSHOT_ADVICE = "Load the table again from the source: `binlog-relay feed snapshot --table {table}`; or leave it out with `exclude`."
"""This way on always exists: it sets the table's place after the trouble."""


def table_stop(name: str, place: str, table: str, text: str) -> FeedStop:
    """Return a stop that a snapshot of one table ends."""
    return FeedStop(name, place, text, SNAPSHOT_ADVICE.format(table=table), table)
