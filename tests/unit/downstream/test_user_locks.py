"""GET_LOCK between connections: who has it, who comes next, and who would wait for ever."""

import asyncio
import time
from dataclasses import replace

import pytest

from protocol.errors import StatementRefused
from protocol.resultset import Rows, Value
from protocol.statements import Done, SourceFacts, StatementSession, answer_statement
from protocol.statements.requests import LockAction, LockCall, UseLocks
from relay.downstream.connection.user_locks import UserLocks

MYSQL = SourceFacts("mysql", "9.7.4", 1, "uuid")
MYSQL_56 = SourceFacts("mysql", "5.6.24", 1, "uuid")
MARIADB = SourceFacts("mariadb", "10.11.18-MariaDB", 1)


class Asker:
    """One connection."""

    def __init__(self, locks: UserLocks, number: int, facts: SourceFacts = MYSQL) -> None:
        self._locks, self._number, self._facts = locks, number, facts

    async def select(self, what: str) -> Value:
        request = answer_statement(f"SELECT {what} AS Value", StatementSession(self._facts, self._number), 0.0)
        assert isinstance(request, UseLocks)
        rows = await self._locks.answer(request, self._number, self._facts)
        assert isinstance(rows, Rows)
        assert rows.names == ("Value",)
        return rows.rows[0][0]


@pytest.fixture
def locks() -> UserLocks:
    return UserLocks()


async def test_one_has_it_and_others_do_not(locks: UserLocks) -> None:
    one, other = Asker(locks, 1), Asker(locks, 2)
    assert await one.select("IS_FREE_LOCK('a')") == 1
    assert await one.select("GET_LOCK('a', 0)") == 1
    assert await other.select("GET_LOCK('A', 0)") == 0
    assert [await other.select(f"{name}('a')") for name in ("IS_FREE_LOCK", "IS_USED_LOCK", "RELEASE_LOCK")] == [
        0,
        1,
        0,
    ]
    assert await one.select("RELEASE_LOCK('a')") == 1
    assert await one.select("RELEASE_LOCK('a')") is None
    assert await other.select("GET_LOCK('a', 0)") == 1


async def test_who_takes_it_twice_releases_it_twice(locks: UserLocks) -> None:
    one = Asker(locks, 1)
    for _ in range(2):
        await one.select("GET_LOCK('a', 0)")
    await one.select("GET_LOCK('b', 0)")
    assert await one.select("RELEASE_LOCK('a')") == 1
    assert await one.select("IS_USED_LOCK('a')") == 1
    assert await one.select("RELEASE_ALL_LOCKS()") == 2
    assert await one.select("IS_FREE_LOCK('b')") == 1


async def test_who_waits_gets_it_in_the_order_of_asking_when_a_connection_ends(locks: UserLocks) -> None:
    askers = [Asker(locks, number) for number in (1, 2, 3)]
    assert await askers[0].select("GET_LOCK('a', 0)") == 1
    second, third = (asyncio.ensure_future(asker.select("GET_LOCK('a', 60)")) for asker in askers[1:])
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    locks.release_all(1)
    assert await second == 1
    assert not third.done()
    locks.release_all(2)
    assert await third == 1


async def test_waiting_ends_with_its_time(locks: UserLocks) -> None:
    await Asker(locks, 1).select("GET_LOCK('a', 0)")
    assert await Asker(locks, 2).select("GET_LOCK('a', 0.01)") == 0
    locks.release_all(1)
    assert await Asker(locks, 3).select("GET_LOCK('a', 0)") == 1


async def test_who_left_while_waiting_gets_nothing(locks: UserLocks) -> None:
    await Asker(locks, 1).select("GET_LOCK('a', 0)")
    waiting = asyncio.ensure_future(Asker(locks, 2).select("GET_LOCK('a', -1)"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    locks.release_all(1)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await Asker(locks, 3).select("IS_FREE_LOCK('a')") == 1


@pytest.mark.parametrize(("facts", "number"), [(MYSQL, 3058), (MARIADB, 1213)], ids=["mysql", "mariadb"])
async def test_two_that_would_wait_for_each_other_are_told(locks: UserLocks, facts: SourceFacts, number: int) -> None:
    one, other = Asker(locks, 1, facts), Asker(locks, 2, facts)
    await one.select("GET_LOCK('a', 0)")
    await other.select("GET_LOCK('b', 0)")
    waiting = asyncio.ensure_future(one.select("GET_LOCK('b', 60)"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    with pytest.raises(StatementRefused) as caught:
        await other.select("GET_LOCK('a', 60)")
    assert caught.value.number == number
    locks.release_all(2)
    assert await waiting == 1


async def test_an_old_server_gives_one_lock_at_a_time(locks: UserLocks) -> None:
    one = Asker(locks, 1, MYSQL_56)
    await one.select("GET_LOCK('a', 0)")
    await one.select("GET_LOCK('b', 0)")
    assert await one.select("IS_FREE_LOCK('a')") == 1
    with pytest.raises(StatementRefused):
        await one.select("RELEASE_ALL_LOCKS()")


async def test_one_connection_cannot_have_any_number_of_them(locks: UserLocks) -> None:
    one = Asker(locks, 1)
    with pytest.raises(StatementRefused) as caught:
        for number in range(1000):
            await one.select(f"GET_LOCK('{number}', 0)")
    assert caught.value.number == 1235


async def test_locks_of_many_others_do_not_make_taking_and_releasing_slower(locks: UserLocks) -> None:
    take = [LockCall(LockAction.GET, str(number), 0.0) for number in range(64)]
    for other in range(200):
        calls = tuple(replace(call, name=f"{other} {call.name}") for call in take)
        await locks.answer(UseLocks(calls, shows=True), other, MYSQL)
    begin = time.thread_time()
    for _ in range(1000):
        calls = (LockCall(LockAction.GET, "own", 0.0), LockCall(LockAction.RELEASE_ALL))
        await locks.answer(UseLocks(calls, shows=True), 2000, MYSQL)
    # A look at each of 12,800 locks for each call takes 1.5 s.
    assert time.thread_time() - begin < 0.4


async def test_who_was_given_a_lock_and_left_at_once_takes_it_from_nobody(locks: UserLocks) -> None:
    call = UseLocks((LockCall(LockAction.GET, "a", 5.0),))
    await locks.answer(call, 1, MYSQL)
    second = asyncio.create_task(locks.answer(call, 2, MYSQL))
    await asyncio.sleep(0)
    third = asyncio.create_task(locks.answer(call, 3, MYSQL))
    await asyncio.sleep(0)
    locks.release_all(1)
    # The second connection ends in the same iteration in which it was given the lock.
    locks.release_all(2)
    second.cancel()
    assert isinstance(await third, Rows)
    with pytest.raises(asyncio.CancelledError):
        await second
    assert await Asker(locks, 4).select("IS_USED_LOCK('a')") == 3


async def test_names_are_checked_as_a_server_checks_them(locks: UserLocks) -> None:
    with pytest.raises(StatementRefused) as caught:
        await Asker(locks, 1).select(f"GET_LOCK('{'x' * 65}', 0)")
    assert caught.value.number == 3057
    assert await Asker(locks, 1, MARIADB).select("GET_LOCK(NULL, 0)") is None


async def test_do_releases_without_an_answer(locks: UserLocks) -> None:
    await Asker(locks, 1).select("GET_LOCK('a', 0)")
    request = answer_statement("DO RELEASE_LOCK('a')", StatementSession(MYSQL, 1), 0.0)
    assert isinstance(request, UseLocks)
    assert await locks.answer(request, 1, MYSQL) == Done()
    assert await Asker(locks, 2).select("IS_FREE_LOCK('a')") == 1
