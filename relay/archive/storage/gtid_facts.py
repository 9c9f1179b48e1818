"""The GTID facts of one archived file, and those of the files together: each continues where the one before it ended.

A state is what was executed up to a place: a set of transactions (MySQL), or the last group of each server in each domain (MariaDB).
A file's state before it is stored only if it is not simply the state after the file before it: a set of 16 MB is so kept once, not
with each of 10,000 files.
"""

from typing import Final, NamedTuple

from protocol.gtid.codec import decode_gtid_set, encode_gtid_set
from protocol.gtid.file_gtids import Run
from protocol.gtid.gtid_set import GtidSet, GtidSetBuilder
from protocol.gtid.mariadb import DomainGtid, GtidList, decode_gtid_list, encode_gtid_list

GtidValue = GtidSet | GtidList

UNREADABLE: Final = "gtid_unreadable"
"""The ledger's kind for a file whose GTIDs cannot be read; by file and position it is served all the same."""
HEAD_DIFFERS: Final = "gtid_head_differs"
"""The ledger's kind for a file whose head names other transactions than the files before it contain."""
_SHOWN_CHARACTERS: Final = 480
_FAMILIES: Final = {"mysql": "a MySQL server", "mariadb": "a MariaDB server"}


class GtidFacts(NamedTuple):
    """One file. `before`: the state that its head names; None: neither the head nor anything else does.

    `inside`: its whole transactions, as a list the last group of each server; None: they could not be read. `anonymous`: how many of
    its transactions have no GTID.
    """

    before: GtidValue | None
    inside: GtidValue | None
    anonymous: int


class GtidNews(NamedTuple):
    """The GTIDs that a batch of runs added to the file that grows.

    `head`: the state at the file's head, reported once; `runs`: transactions that ended, also longer forms of runs that were reported
    before; `anonymous`: of all the file. `readable`: whether the file's GTIDs could be read so far; if not, nothing more is reported
    of it.
    """

    head: GtidValue | None
    runs: tuple[Run, ...]
    anonymous: int
    readable: bool = True


class GtidEntry(NamedTuple):
    """A file's facts on their way into the catalog.

    `before`: the state before it; `follows`: that is simply the state after the file before it.
    """

    number: int
    before: GtidValue | None
    follows: bool
    inside: GtidValue | None
    anonymous: int


NOT_KNOWN: Final = GtidFacts(None, None, 0)
"""The facts of a file whose GTIDs could not be read."""


def facts_of_family(flavour: str, facts: GtidFacts) -> GtidFacts:
    """Return `facts`, if they are such as a file of this flavour has; else `NOT_KNOWN`."""
    kind = GtidSet if flavour == "mysql" else GtidList
    fits = all(value is None or isinstance(value, kind) for value in (facts.before, facts.inside))
    return facts if fits else NOT_KNOWN


def family_change(name: str, flavour: str, before: str) -> str | None:
    """Return the ledger's text for a change of the family of servers between two files; None: there is none.

    name, flavour: of the file; before: the flavour of the file before it, "" if there is none.
    """
    if not flavour or not before or flavour == before:
        return None
    change = f"{name} is of {_FAMILIES[flavour]}, the file before it of {_FAMILIES[before]}"
    return f"{change}; no replica that asks by GTID gets the files before it."


class GtidChain:
    """Goes over files, oldest first, and knows the state after the last one."""

    __slots__ = ("_growing", "_state", "number")

    def __init__(self, number: int = -1, state: GtidValue | None = None) -> None:
        self.number = number
        """The number of the file that was added last, -1: none."""
        self._state = state
        self._growing: GtidSetBuilder | None = None
        """MySQL: the state, if files were added to it since it was read: with 100,000 files it is not read for each."""

    @property
    def state(self) -> GtidValue | None:
        """The state before the next file; None: unknown."""
        if self._growing is not None:
            self._state = self._growing.snapshot()
            self._growing = None
        return self._state

    def difference(self, number: int, head: GtidValue | None) -> str | None:
        """Return how the head of file `number` contradicts the files before it, in words; None: it does not.

        A list without all of a domain does not: the source removed it (FLUSH BINARY LOGS DELETE_DOMAIN_ID).
        """
        state = self.state
        if head is None or state is None or head == state or number != self.number + 1:
            return None
        if isinstance(head, GtidSet) and isinstance(state, GtidSet):
            return (
                f"The file's head names transactions that the files before it do not hold: {_shown(head - state)}; "
                f"they hold transactions that it does not name: {_shown(state - head)}."
            )
        if isinstance(head, GtidList) and isinstance(state, GtidList):
            domains = {gtid.domain_id for gtid in head}
            if head == GtidList((gtid for gtid in state if gtid.domain_id in domains), state.flags):
                return None
        return f"The file's head has the state {_shown(head)}, the files before it end at {_shown(state)}."

    def entry(self, number: int, facts: GtidFacts) -> GtidEntry:
        """Return the facts of file `number`, the next one, for the catalog."""
        before = self.before(facts)
        follows = number == self.number + 1 and before == self.state
        return GtidEntry(number, before, follows, facts.inside, facts.anonymous)

    def before(self, facts: GtidFacts) -> GtidValue | None:
        """Return the state before the next file, which has `facts`. None if the files before it are of the other family."""
        if facts.before is not None:
            return facts.before
        state = self.state
        return state if facts.inside is None or isinstance(state, type(facts.inside)) else None

    def add(self, number: int, facts: GtidFacts) -> None:
        """Step over file `number`."""
        self.number = number
        inside = facts.inside
        if self._growing is not None and facts.before is None and isinstance(inside, GtidSet):
            self._growing.add_set(inside)
            return
        before = self.before(facts)
        self._state, self._growing = None, None
        if isinstance(inside, GtidSet):
            self._growing = GtidSetBuilder(before if isinstance(before, GtidSet) else None)
            self._growing.add_set(inside)
        elif inside is not None:
            self._state = state_behind(before, inside)


def state_behind(before: GtidValue | None, inside: GtidValue) -> GtidValue:
    """Return the state after what is `inside` was executed too."""
    if isinstance(inside, GtidSet):
        return before | inside if isinstance(before, GtidSet) else inside
    return before.advanced(inside) if isinstance(before, GtidList) else inside


def encode_state(state: GtidValue) -> bytes:
    """Return the state as in the event at a file's head."""
    return encode_gtid_set(state) if isinstance(state, GtidSet) else encode_gtid_list(state)


def decode_state(flavour: str, data: bytes) -> GtidValue:
    """Decode a state. Raises: Malformed."""
    return decode_gtid_set(data) if flavour == "mysql" else decode_gtid_list(data)


def domain_gtid(run: Run) -> DomainGtid:
    """Return the last group of a run of MariaDB's."""
    return DomainGtid(int.from_bytes(run.key[:4], "little"), int.from_bytes(run.key[4:8], "little"), run.last)


def _shown(state: GtidValue) -> str:
    text = state.line if isinstance(state, GtidSet) else str(state)
    return (text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "...") or "none"
