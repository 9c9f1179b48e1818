"""engines = "innodb" as one would do it by hand: the result of a view without the rest of its rules."""

from relay.view.rules.definition_rules import define
from relay.view.rules.group import Copy, New, OutGroup, SourceGroup
from relay.view.rules.group_parts import PartKind, read_parts
from relay.view.rules.synthesized_events import changed
from tests.support.rule_groups import settings


class OnlyEngines:
    """A substitute for the rules that changes the engine in definitions, and nothing else."""

    def __init__(self) -> None:
        self.settings = settings(engines="innodb")

    def plan(self, group: SourceGroup) -> list[OutGroup]:
        """Return the plan of a group."""
        pieces: list[Copy | New] = []
        for part in read_parts(group):
            raw = part.query.raw if part.query is not None else b""
            made = define(part.query, self.settings) if part.query is not None else b""
            if part.query is not None and part.kind is PartKind.STATEMENT and made != raw:
                pieces.append(changed(part.event, part.query.with_text(made)))
            else:
                pieces.append(Copy(part.start, part.stop))
        return [OutGroup(pieces)]
