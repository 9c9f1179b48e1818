"""What may come into a stream that was asked for by GTID after it began, and changes it or ends it."""

from collections.abc import Sequence
from typing import Final, Protocol

from protocol.errors import ErrorCode
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import DomainGtid, GtidList
from relay.archive.generation import Generation
from relay.downstream.gtid_filter.group_filter import GtidWalk
from relay.downstream.gtid_filter.gtid_lookup import GtidLookup
from relay.downstream.gtid_filter.mysql_filter import MysqlWalk
from relay.downstream.request.refusal import refusal

_NOTHING: Final = GtidSet()


class StreamGuide(Protocol):
    """Is asked before each run of the archive's bytes, on the event loop, and takes microseconds."""

    def must_walk(self, file: str) -> bool:
        """Whether what is published of `file` by now must be looked at event by event."""

    def walk(self, walk: GtidWalk | None) -> GtidWalk | None:
        """The walk to go on with, outside of any transaction. `walk`: the one so far, None: all that follows is sent.

        Raises: PositionRefused where the stream ends instead.
        """


class MysqlGuide:
    """A source ends a stream by GTID before a transaction that has none, and, with GTID_MODE = OFF, before one that has one.

    strange: transactions that the replica has, of sources of which nothing was published here. Most replicas have such, their
    own; as long as nothing of those sources comes, nothing has to be looked at for them. takes_v2: as `MysqlWalk` has it.
    Source: MySQL 9.7 `rpl_binlog_sender.cc (check_event_type)`.
    """

    def __init__(
        self,
        gtids: GtidLookup,
        generation: Generation,
        strange: GtidSet = _NOTHING,
        *,
        sources_seen: int = 0,
        takes_v2: bool = False,
    ) -> None:
        self._gtids = gtids
        self._generation = generation
        self._strange = strange
        self._takes_v2 = takes_v2
        self._sources_seen = sources_seen
        self._came = GtidSet()
        self._anonymous = False
        self._told = False
        """Whether the walk was told to end the stream: then it is told the opposite, too."""

    @property
    def _off(self) -> bool:
        return self._gtids.source_mode() == "OFF"

    def must_walk(self, file: str) -> bool:
        """See `StreamGuide`."""
        state = self._generation.gtids
        if len(state.sources) != self._sources_seen:
            self._came |= self._strange.of_sources(state.sources[self._sources_seen :])
            self._sources_seen = len(state.sources)
        self._anonymous = state.has_anonymous(file)
        return self._anonymous or self._off or self._told or bool(self._came)

    def walk(self, walk: GtidWalk | None) -> GtidWalk | None:
        """See `StreamGuide`."""
        off = self._off
        walk = walk or MysqlWalk(takes_v2=self._takes_v2)
        assert isinstance(walk, MysqlWalk)
        if self._came:
            walk.also(self._came)
            self._came = GtidSet()
        walk.refuse(anonymous=self._anonymous, gtids=off)
        self._told = self._anonymous or off
        return walk


class MariadbGuide:
    """A source looks at a replica's position in a domain that was empty there as soon as something of the domain comes.

    Here the stream ends then, with an error that makes the replica ask again at once: what its position in that domain is
    worth is decided as with any request. Source: MariaDB 10.11 `sql_repl.cc (START_ON_EMPTY_DOMAIN)`.
    """

    def __init__(self, gtids: GtidLookup, strange: Sequence[DomainGtid]) -> None:
        self._gtids = gtids
        self.strange = strange

    def must_walk(self, file: str) -> bool:
        """See `StreamGuide`."""
        return bool(self.strange) and bool(self._known())

    def _known(self) -> list[DomainGtid]:
        state = self._gtids.executed
        domains = {gtid.domain_id for gtid in state} if isinstance(state, GtidList) else set()
        return [gtid for gtid in self.strange if gtid.domain_id in domains]

    def walk(self, walk: GtidWalk | None) -> GtidWalk | None:
        """See `StreamGuide`. Raises: PositionRefused (1105)."""
        known = ",".join(map(str, self._known()))
        raise refusal(
            f"The replica's position has {known}, of a domain that was empty at the source and is not any more: "
            "the replica asks again with the same position, which is then compared with what is there",
            ErrorCode.ER_UNKNOWN_ERROR,
        )
