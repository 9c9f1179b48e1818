"""The definition of a readiness check."""

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
    """The effect on the newer replica."""

    STOPS = "stops"
    MAY_DIFFER = "may differ"
    TO_KNOW = "to know"


@dataclass(frozen=True, slots=True)
class Check:
    """One check. `concerns` are the replicas' versions, as their documentation (`source`) or a test has it.

    `families` are the newer servers that it concerns, a source's own family being that of its replicas. `stop` is the name by which a
    [[view]] stops at the same, see docs/ERRORS.md; "" means that a view translates it, or passes it on to the replica. `finds` returns
    whether a statement gives reason for it, and is called once for each digest text; None means that the check concerns something else.
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
        """Return whether it concerns newer servers of `family`. For a MIGRATION only the checks for every server apply: a view
        translates the rest, or stops there."""
        return family in self.families or (family == MIGRATION and set(BOTH) <= set(self.families))
