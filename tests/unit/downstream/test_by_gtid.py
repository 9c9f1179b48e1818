"""A replica that asks by GTID and has what the archive has not: it is for the source to say whether that comes."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from protocol.commands import BinlogDump
from protocol.errors import ErrorCode, PositionRefused
from protocol.gtid.dump_decision import SourceHoldings, StillAwaited
from protocol.gtid.dump_refusals import ahead_refused
from protocol.gtid.dump_request import BinlogDumpGtid
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import DomainGtid, GtidList
from protocol.gtid.mysql_gtid import parse_uuid
from protocol.resultset import Value
from protocol.statements import SourceFacts
from protocol.statements.session.gtid_variables import GtidVariables
from relay.downstream.gtid_filter.gtid_lookup import GtidLookup
from relay.downstream.request.dump_request import DumpRequest
from relay.downstream.request.source_state import SourceState
from relay.downstream.start.by_gtid import find_gtid_start, gtid_request

UUID = "00010203-0405-0607-0809-0a0b0c0d0e0f"
AHEAD = GtidSet.from_text(f"{UUID}:9")
FACTS = SourceFacts("mysql", "9.7.4", 1, UUID, gtids=lambda: GtidVariables(mode="ON"))
REQUEST = BinlogDumpGtid(flags=0, server_id=7, file="", offset=4, held=b"")


class Lookup:
    """An archive that has what a replica has only after `turns` questions, and a source that has `source`."""

    source_uuids = (parse_uuid(UUID),)

    def __init__(self, source: GtidSet | None, turns: int = 1 << 30) -> None:
        self.held = source
        self.source = SourceState(ask_gtids=self.ask_gtids)
        self.turns = turns
        self.asked_source = 0

    async def ask(self, question: Callable[[Any], Any]) -> Any:
        self.turns -= 1
        if self.turns < 0:
            return "a start"
        raise StillAwaited(ahead_refused(AHEAD, (9, 7, 4)), AHEAD)

    async def ask_gtids(self) -> SourceHoldings | None:
        self.asked_source += 1
        return SourceHoldings(self.held) if self.held is not None else None


async def started(lookup: Lookup, wait_s: float = 0.3) -> object:
    moved = asyncio.Event()
    gtids = cast(GtidLookup, lookup)
    requested = gtid_request(DumpRequest(REQUEST, {}, FACTS, None, None, ""), gtids)
    return await find_gtid_start(requested, gtids, wait_s=wait_s, next_move=lambda: moved)


async def test_what_the_source_has_not_is_refused_for_good_at_once() -> None:
    lookup = Lookup(GtidSet.from_text(f"{UUID}:1-8"))
    began = asyncio.get_running_loop().time()
    with pytest.raises(PositionRefused) as caught:
        await started(lookup, wait_s=30)
    assert caught.value.number == ErrorCode.ER_MASTER_FATAL_ERROR_READING_BINLOG
    assert caught.value.what.startswith("Replica has more GTIDs than the source has")
    assert asyncio.get_running_loop().time() - began < 5


@pytest.mark.parametrize("source", [AHEAD, None])
async def test_what_the_source_has_or_may_have_is_waited_for_and_the_replica_may_try_again(
    source: GtidSet | None,
) -> None:
    lookup = Lookup(source)
    with pytest.raises(PositionRefused) as caught:
        await started(lookup)
    assert caught.value.number == ErrorCode.ER_UNKNOWN_ERROR
    assert lookup.asked_source == 1


async def test_what_comes_meanwhile_is_served() -> None:
    assert await started(Lookup(AHEAD, turns=1)) == "a start"


def test_a_source_lacks_what_is_not_in_its_set_or_state() -> None:
    assert SourceHoldings(GtidSet.from_text(f"{UUID}:1-8")).lacks(AHEAD)
    assert not SourceHoldings(GtidSet.from_text(f"{UUID}:1-9")).lacks(AHEAD)
    state = GtidList.from_text("0-1-5,0-2-9")
    assert SourceHoldings(state).lacks([DomainGtid(0, 1, 5), DomainGtid(0, 1, 6)])
    assert not SourceHoldings(state).lacks([DomainGtid(0, 1, 5), DomainGtid(0, 2, 3)])


@pytest.mark.parametrize(
    ("name", "said", "number"),
    [
        ("slave_connect_state", "nothing", ErrorCode.ER_INCORRECT_GTID_STATE),
        ("slave_connect_state", "0-1-1,0-2-2", ErrorCode.ER_DUPLICATE_GTID_DOMAIN),
        ("slave_until_gtid", "0-1", ErrorCode.ER_INCORRECT_GTID_STATE),
    ],
)
def test_a_mariadb_position_that_cannot_be_read_has_the_sources_number(name: str, said: str, number: ErrorCode) -> None:
    facts = SourceFacts("mariadb", "10.11.18-MariaDB", 1)
    variables: dict[str, Value] = {"slave_connect_state": "", name: said}
    asked = BinlogDump(offset=4, flags=0, server_id=7, file="")
    requested = gtid_request(DumpRequest(asked, variables, facts, None, None, ""), cast(GtidLookup, Lookup(None)))
    with pytest.raises(PositionRefused) as caught:
        requested.start([])
    assert caught.value.number == number
