"""The GTIDs of a MariaDB source's groups: of each domain one uuid, and numbers that never come twice."""

from uuid import UUID, uuid5

import pytest

from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import GtidList
from relay.view.rules.mariadb.assigned_gtids import LAST_GNO, AssignedGtids, domain_uuid
from relay.view.stops.stop_reason import Untranslatable

BASE = UUID("5a3c1b9e-7d20-5c44-8f61-0d2e4b6a8c10")


def given(*groups: tuple[int, int], before: str = "") -> AssignedGtids:
    """What was given to groups of these domains and numbers, behind a Gtid_list."""
    made = AssignedGtids(BASE)
    made.executed_before(GtidList.from_text(before))
    for domain, number in groups:
        made.check(domain, number)
        made.give(domain, number, None)
    return made


def refused(made: AssignedGtids, domain: int, number: int) -> str:
    with pytest.raises(Untranslatable) as stop:
        made.check(domain, number)
    return stop.value.reason.name


def test_the_uuid_is_of_the_domain_and_of_which_transaction_of_the_group_it_is() -> None:
    uuids = [domain_uuid(BASE, 0), domain_uuid(BASE, 1), domain_uuid(BASE, 0, 1), domain_uuid(BASE, 0, 2)]
    assert len({*uuids, BASE}) == 5
    assert uuids[0] == uuid5(BASE, "mariadb 0")


def test_all_numbers_are_told_with_their_holes() -> None:
    made = given((0, 1), (0, 2), (7, 100), (0, 5))
    zero, seven = domain_uuid(BASE, 0), domain_uuid(BASE, 7)
    assert made.executed() == GtidSet.from_text(f"{zero}:1-2:5,{seven}:100")


def test_what_a_gtid_list_names_was_executed_up_to_the_greatest_number_of_the_domain() -> None:
    made = given((0, 11), before="0-1-7,0-2-10,3-1-4")
    assert made.executed() == GtidSet.from_text(f"{domain_uuid(BASE, 0)}:1-11,{domain_uuid(BASE, 3)}:1-4")
    made.executed_before(GtidList.from_text("0-1-50,4-1-2"))
    assert made.last(0) == 11
    assert made.last(4) == 2


@pytest.mark.parametrize("number", [10, 9, 1, 0])
def test_a_number_that_does_not_rise_is_refused(number: int) -> None:
    assert refused(given((0, 10)), 0, number) == "sequence_not_increasing"
    assert refused(given(before="0-5-10"), 0, number) == "sequence_not_increasing"
    if number:
        given((0, 10)).check(1, number)


def test_a_number_that_mysql_does_not_take_is_refused() -> None:
    given().check(0, LAST_GNO)
    assert refused(given(), 0, LAST_GNO + 1) == "sequence_too_large"


def test_a_group_that_becomes_several_gives_each_its_own_uuid() -> None:
    made = given((0, 1))
    made.give(0, 2, None, 3)
    uuids = [domain_uuid(BASE, 0), domain_uuid(BASE, 0, 1), domain_uuid(BASE, 0, 2)]
    assert made.executed() == GtidSet.from_text(f"{uuids[0]}:1-2,{uuids[1]}:2,{uuids[2]}:2")


def test_groups_of_one_commit_wait_for_the_same_transaction() -> None:
    made = AssignedGtids(BASE)
    waits = [made.give(0, number, commit) for number, commit in enumerate([9, 9, 9, 12, 12, None, 12, 13], 1)]
    assert waits == [0, 1, 2, 0, 1, 0, 0, 0]
    made.give(0, 9, 13)
    made.begin_file()
    assert made.give(0, 10, 13) == 0


def test_what_was_given_is_known_again_from_its_state() -> None:
    made = given((0, 1), (0, 5), (0, 6), (9, 3), before="4-1-77")
    made.give(9, 4, 55, 2)
    made.give(0, 7, 56)
    again = AssignedGtids(BASE)
    again.restore(made.state())
    assert (again.state(), again.executed()) == (made.state(), made.executed())
    assert again.give(0, 8, 56) == made.give(0, 8, 56) == 1
    again.restore(b"")
    assert not again.executed()
