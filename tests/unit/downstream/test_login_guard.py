"""Failed logins by address: later and later answers, a block, and bounded memory."""

import pytest

from protocol.errors import ErrorCode
from relay.downstream.connection import login_guard
from relay.downstream.connection.login_guard import LoginGuard

ADDRESS = "192.0.2.1"


def failed(
    guard: LoginGuard, count: int, *, address: str = ADDRESS, now: float = 0.0, user: str = "repl"
) -> list[float]:
    return [guard.rule(address, now, user=user, accepted=False).hold_s for _ in range(count)]


def test_each_failure_makes_the_next_answer_later_up_to_a_limit() -> None:
    assert failed(LoginGuard(0, 60), 8) == [0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]


def test_a_right_password_is_answered_as_late_as_a_wrong_one() -> None:
    guard = LoginGuard(0, 60)
    failed(guard, 3)
    right, wrong = guard.rule(ADDRESS, 0.0, user="repl", accepted=True).hold_s, failed(LoginGuard(0, 60), 4)[-1]
    assert right == wrong


def test_a_right_password_makes_the_failures_forgotten() -> None:
    guard = LoginGuard(3, 60)
    failed(guard, 2)
    guard.rule(ADDRESS, 0.0, user="repl", accepted=True)
    assert failed(guard, 1) == [0.0]
    assert len(guard) == 1


def test_a_right_password_of_another_user_forgives_no_guesses() -> None:
    guard = LoginGuard(5, 60)
    for hold_s in (0.0, 0.1, 0.2, 0.4, 0.8):
        assert failed(guard, 1, user="dba") == [hold_s]
        guard.rule(ADDRESS, 0.0, user="repl", accepted=True)
    assert guard.refusal(ADDRESS, 0.0) is not None


def test_guesses_of_many_users_are_counted_together_in_little_memory() -> None:
    guard = LoginGuard(100, 60)
    for number in range(99):
        failed(guard, 1, user=f"user{number}" * 1000)
    for number in range(99):
        guard.rule(ADDRESS, 0.0, user=f"user{number}" * 1000, accepted=True)
    assert failed(guard, 1) == [2.0]
    (failures,) = guard._failures.values()
    assert len(failures.by_user) <= 9


def test_other_addresses_are_not_held_up() -> None:
    guard = LoginGuard(3, 60)
    failed(guard, 3)
    assert guard.refusal("192.0.2.2", 0.0) is None
    assert failed(guard, 1, address="192.0.2.2") == [0.0]


def test_an_address_is_blocked_after_its_failures_and_free_again_after_the_time() -> None:
    guard = LoginGuard(3, 60)
    failed(guard, 2, now=100.0)
    assert guard.refusal(ADDRESS, 100.0) is None
    failed(guard, 1, now=100.0)
    refusal = guard.refusal(ADDRESS, 159.9)
    assert refusal is not None
    assert refusal.number == ErrorCode.ER_HOST_IS_BLOCKED
    assert refusal.what.startswith("Host '192.0.2.1' is blocked because of many connection errors")
    assert guard.refusal(ADDRESS, 160.0) is None
    assert failed(guard, 1, now=160.0) == [0.0]


def test_a_right_password_on_a_connection_from_before_the_block_is_refused_too() -> None:
    guard = LoginGuard(3, 60)
    failed(guard, 3)
    assert guard.rule(ADDRESS, 1.0, user="repl", accepted=True).instead is not None


def test_failures_of_long_ago_do_not_count() -> None:
    guard = LoginGuard(3, 60)
    failed(guard, 2, now=0.0)
    failed(guard, 2, now=700.0)
    assert guard.refusal(ADDRESS, 700.0) is None


def test_none_is_ever_blocked_without_a_limit() -> None:
    guard = LoginGuard(0, 60)
    failed(guard, 1000)
    assert guard.refusal(ADDRESS, 0.0) is None


def test_flush_hosts_unblocks_everybody() -> None:
    guard = LoginGuard(1, 60)
    failed(guard, 1)
    guard.forget()
    assert guard.refusal(ADDRESS, 0.0) is None


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8::1", "2001:db8::ffff:1:2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("::1", "::2", False),
    ],
)
def test_an_ipv6_network_counts_as_one_and_a_mapped_address_as_ipv4(one: str, other: str, same: bool) -> None:
    guard = LoginGuard(1, 60)
    failed(guard, 1, address=one)
    assert (guard.refusal(other, 0.0) is not None) == same


def test_memory_is_bounded_and_the_oldest_failure_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login_guard, "_MAX_ADDRESSES", 3)
    guard = LoginGuard(1, 60)
    for last in range(5):
        failed(guard, 1, address=f"192.0.2.{last}")
    assert len(guard) == 3
    assert guard.refusal("192.0.2.1", 0.0) is None
    assert guard.refusal("192.0.2.2", 0.0) is not None
