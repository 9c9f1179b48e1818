"""The origin of a generation of the archive: where the one before it ended, and what was executed up to there."""

from collections.abc import Collection
from dataclasses import dataclass

from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import GtidList
from relay.archive.storage.gtid_facts import GtidValue


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin is written before the generation's first file and never changed.

    time: Unix seconds. file: the source's file that it begins with, from its first byte on. after_file, after_offset: the end of the
    generation before it, a transaction boundary. state: everything that was executed up to there, or None: unknown.
    """

    time: float
    file: str
    after_file: str
    after_offset: int
    state: GtidValue | None


def covers(later: GtidValue, before: GtidValue) -> bool:
    """Return whether all of `before` is in `later`."""
    if isinstance(before, GtidSet):
        return isinstance(later, GtidSet) and not before - later
    return isinstance(later, GtidList) and all(later.contains(gtid) for gtid in before)


def joined(before: GtidValue | None, later: GtidValue | None) -> GtidValue | None:
    """Return what was executed once both were: `later` is of the source that came after the one of `before`.

    A source's first file may begin with transactions of `before`; until the rest has come it has fewer of them.
    """
    if before is None or later is None:
        return later if before is None else before
    if isinstance(before, GtidSet):
        return before | later if isinstance(later, GtidSet) else before
    if not isinstance(later, GtidList):
        return before
    return before.advanced(gtid for gtid in later if not before.contains(gtid))


def without_domains(state: GtidValue | None, domains: Collection[int]) -> GtidValue | None:
    """Return what is left of the state when the source has removed these MariaDB domains from its own."""
    if not domains or not isinstance(state, GtidList):
        return state
    return GtidList(gtid for gtid in state if gtid.domain_id not in domains)
