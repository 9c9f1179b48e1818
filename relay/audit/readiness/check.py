"""What a readiness check is."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from relay.audit.readiness.logged_statement import LoggedStatement

MYSQL: Final = "mysql"
MARIADB: Final = "mariadb"
BOTH: Final = (MYSQL, MARIADB)
MIGRATION: Final = "migration"
"""MySQL servers that follow a view of a MariaDB."""


class Effect(Enum):
    """What happens on the newer replica."""

    STOPS = "stops"
    MAY_DIFFER = "may differ"
    TO_KNOW = "to know"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that is looked for. `concerns`: the replicas' versions, as their documentation (`source`) or a test has it.

    `families`: which newer servers it is about, a source's own family being what its replicas are of. `stop`: the name by which a
    [[view]] stops at the same, see docs/ERRORS.md; "": a view translates it, or hands it on to the replica. `finds`: whether a
    statement gives reason for it, asked once for each digest text; None: it is about something else.
    """

    name: str
    effect: Effect
    title: str
    concerns: str
    advice: str
    source: str
    families: tuple[str, ...] = (MYSQL,)
    stop: str = ""
    finds: Callable[[LoggedStatement], bool] | None = None

    def concerns_servers(self, family: str) -> bool:
        """Whether it is about newer servers of `family`. For a MIGRATION are the checks that are about every server: the rest a view
        translates, or it stops there."""
        return family in self.families or (family == MIGRATION and set(BOTH) <= set(self.families))
