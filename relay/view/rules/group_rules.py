"""Stand-in until the rules are here."""

from relay.view.rules.group import Copy, OutGroup, SourceGroup
from relay.view.rules.settings import ViewSettings


class MysqlRules:
    """Everything as it is."""

    def __init__(self, settings: ViewSettings) -> None:
        self.settings = settings
        self.wants_statements = False
        self.look_at = bytes(256)

    def plan(self, group: SourceGroup) -> list[OutGroup]:
        """As it is."""
        kind = group.events[0].type
        return [OutGroup([Copy(group.start, group.stop)], "source" if kind in (33, 34, 42) else "new")]

    def state(self) -> bytes:
        """Nothing."""
        return b""

    def restore(self, state: bytes) -> None:
        """Nothing."""
