"""What one archived file says about GTIDs, and what the files together say: each goes on where the one before it ended.

A state is what was executed up to a place: a set of transactions (MySQL), or the last group of each server in each domain
(MariaDB). A file's state before it is written down only where it is not simply the state behind the file before it: a set
of 16 MB is so kept once, not with each of 10,000 files.
"""

from typing import Final, NamedTuple

from protocol.gtid.codec import decode_gtid_set, encode_gtid_set
from protocol.gtid.file_gtids import Run
from protocol.gtid.gtid_set import GtidSet, GtidSetBuilder
from protocol.gtid.mariadb import DomainGtid, GtidList, decode_gtid_list, encode_gtid_list

GtidValue = GtidSet | GtidList

UNREADABLE: Final = "gtid_unreadable"
"""The ledger's kind where a file's GTIDs cannot be read; by file and position it is served all the same."""
HEAD_DIFFERS: Final = "gtid_head_differs"
"""The ledger's kind where a file's head names other transactions than the files before it hold."""
_SHOWN_CHARACTERS: Final = 480
_FAMILIES: Final = {"mysql": "a MySQL server", "mariadb": "a MariaDB server"}


class GtidFacts(NamedTuple):
    """One file. `before`: what its head says of all before it; None: nothing, and nothing else says it.

    `inside`: its whole transactions, as a list the last group of each server; None: they could not be read.
    `anonymous`: how many of its transactions have no GTID.
    """

    before: GtidValue | None
    inside: GtidValue | None
    anonymous: int


class GtidNews(NamedTuple):
    """What a batch of runs added to the file that grows.

    `head`: what the file's head says, reported once; `runs`: transactions that ended, also longer forms of runs that were reported
    before; `anonymous`: of all the file. `readable`: whether the file's GTIDs could be read so far; where not, nothing more is
    reported of it.
    """

    head: GtidValue | None
    runs: tuple[Run, ...]
    anonymous: int
    readable: bool = True


class GtidEntry(NamedTuple):
    """A file's facts on their way into the catalog.

    `before`: the state before it; `follows`: that is simply the state behind the file before it.
    """

    number: int
    before: GtidValue | None
    follows: bool
    inside: GtidValue | None
    anonymous: int


NOT_KNOWN: Final = GtidFacts(None, None, 0)
"""Of a file whose GTIDs could not be read."""


def facts_of_family(flavour: str, facts: GtidFacts) -> GtidFacts:
    """`facts`, where they are such as a file of this flavour has; else `NOT_KNOWN`."""
    kind = GtidSet if flavour == "mysql" else GtidList
    fits = all(value is None or isinstance(value, kind) for value in (facts.before, facts.inside))
    return facts if fits else NOT_KNOWN


def family_change(name: str, flavour: str, before: str) -> str | None:
    """What a change of the family of servers between two files means, for the ledger; None: there is none.

    name, flavour: of the file; before: the flavour of the file before it, "" where there is none.
    """
    if not flavour or not before or flavour == before:
        return None
    change = f"{name} is of {_FAMILIES[flavour]}, the file before it of {_FAMILIES[before]}"
    return f"{change}; no replica that asks by GTID gets the files before it."


class GtidChain:
    """Goes over files, oldest first, and knows the state behind the last one."""

    __slots__ = ("_growing", "_state", "number")

    def __init__(self, number: int = -1, state: GtidValue | None = None) -> None:
        self.number = number
        """The file that was added last, -1: none."""
        self._state = state
        self._growing: GtidSetBuilder | None = None
        """MySQL: the state, where files were added to it since somebody asked: of 100,000 files nobody asks for each."""

    @property
    def state(self) -> GtidValue | None:
        """What the next file has before it; None: nobody knows."""
        if self._growing is not None:
            self._state = self._growing.snapshot()
            self._growing = None
        return self._state

    def difference(self, number: int, head: GtidValue | None) -> str | None:
        """How the head of file `number` contradicts the files before it, in words; None: it does not.

        A list without all of a domain does not: the source took it out (FLUSH BINARY LOGS DELETE_DOMAIN_ID).
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
        """The facts of file `number`, the next one, for the catalog."""
        before = self.before(facts)
        follows = number == self.number + 1 and before == self.state
        return GtidEntry(number, before, follows, facts.inside, facts.anonymous)

    def before(self, facts: GtidFacts) -> GtidValue | None:
        """The state before the next file, of which `facts` are known. None where the files before it are of the other family."""
        if facts.before is not None:
            return facts.before
        state = self.state
        return state if facts.inside is None or isinstance(state, type(facts.inside)) else None

    def add(self, number: int, facts: GtidFacts) -> None:
        """Steps over file `number`."""
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
    """The state once what is `inside` was executed too."""
    if isinstance(inside, GtidSet):
        return before | inside if isinstance(before, GtidSet) else inside
    return before.advanced(inside) if isinstance(before, GtidList) else inside


def encode_state(state: GtidValue) -> bytes:
    """As it stands in the event at a file's head."""
    return encode_gtid_set(state) if isinstance(state, GtidSet) else encode_gtid_list(state)


def decode_state(flavour: str, data: bytes) -> GtidValue:
    """Raises: Malformed."""
    return decode_gtid_set(data) if flavour == "mysql" else decode_gtid_list(data)


def domain_gtid(run: Run) -> DomainGtid:
    """The last group of a run of MariaDB's."""
    return DomainGtid(int.from_bytes(run.key[:4], "little"), int.from_bytes(run.key[4:8], "little"), run.last)


def _shown(state: GtidValue) -> str:
    text = state.line if isinstance(state, GtidSet) else str(state)
    return (text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "...") or "none"
