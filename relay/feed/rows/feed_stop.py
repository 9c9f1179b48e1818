"""The reason why a feed stops: a name, a place, what it means, what to do."""

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


SNAPSHOT_ADVICE = "Load the table again from the source: `binlog-relay feed snapshot --table {table}`; or leave it out with `exclude`."
"""This way on always exists: it sets the table's place after the trouble."""


def table_stop(name: str, place: str, table: str, text: str) -> FeedStop:
    """Return a stop that a snapshot of one table ends."""
    return FeedStop(name, place, text, SNAPSHOT_ADVICE.format(table=table), table)
