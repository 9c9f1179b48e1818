"""Whole logins by each plugin, packet by packet, with a client that has no network."""

import base64
import functools
import hashlib
import itertools
import os
import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from protocol.auth.account import Account
from protocol.auth.accounts import Accounts
from protocol.auth.authenticator import Channel, Step
from protocol.auth.caching_sha2 import StoredSha2
from protocol.auth.credentials import Credentials
from protocol.auth.host_pattern import HostPattern
from protocol.auth.rsa_key import RsaKey
from protocol.auth.sha_crypt import sha256_crypt
from protocol.capabilities import Capability
from protocol.errors import AnsweredError, ErrorCode
from protocol.framing import frame_payload
from protocol.source_side.connection_events import (
    CheckRequested,
    Closed,
    Event,
    LoggedIn,
    LoginRefused,
    TlsRequested,
)
from protocol.source_side.connection_states import IllegalInput, State
from protocol.source_side.connection_terms import Limits, LoginTerms, Ruling
from protocol.source_side.machine import SourceSide
from protocol.statements import SourceFacts
from tests.support.login_client import BEFORE_PLUGINS, LoginClient, packets
from tests.support.stored_hashes import CACHING_SHA2, ED25519, NATIVE
from tests.support.stored_hashes import PASSWORD as STORED_PASSWORD

PASSWORD = "s3cret"
FACTS = SourceFacts("mysql", "5.6.24-log", 1, "11111111-2222-3333-4444-555555555555", "CRC32")
PLUGINS = ["mysql_native_password", "caching_sha2_password", "client_ed25519"]
one_key = functools.cache(RsaKey.new)


def stored_sha2(password: str = PASSWORD, salt: bytes = b"12345678901234567890") -> Credentials:
    return Credentials(sha2=StoredSha2(5000, salt, sha256_crypt(password.encode(), salt, 5000)))


def machine(
    accounts: Accounts | Account,
    *,
    rule: Callable[[Account | None], Ruling] | None = None,
    tls: bool = False,
    accounts_now: Callable[[], Accounts] | None = None,
) -> SourceSide:
    if isinstance(accounts, Account):
        accounts = Accounts([accounts], secret=bytes(32), rsa_key=one_key)
    return SourceSide(
        connection_id=7,
        facts=FACTS,
        login=LoginTerms(accounts, os.urandom, offer_tls=tls, rule=rule, accounts_now=accounts_now),
        host="192.0.2.1",
        now=100.0,
        wall_offset_s=0.0,
        limits=Limits(login_wait_s=5.0),
    )


def over_tls(accounts: Accounts | Account, *, certificate: bool = False) -> SourceSide:
    """A machine whose peer has asked for TLS and has it. Its greeting is still to be read."""
    side = machine(accounts, tls=True)
    greeting = side.bytes_to_send()
    request = struct.pack("<IIB23x", 0x00BFA285 | Capability.SSL, 1 << 24, 33)
    (event,) = side.receive(frame_payload(request, 1), 100.0)
    assert event == TlsRequested(b"")
    side.tls_established(Channel("TLSv1.3", "TLS_AES_256_GCM_SHA384", certificate))
    side._output += greeting
    return side


class TlsClient(LoginClient):
    """Its login packet is the second after SSLRequest."""

    def take_greeting(self) -> None:
        super().take_greeting()
        self._sequence = 1


def logged_in_by(client: LoginClient) -> str:
    (event,) = client.run()
    assert isinstance(event, LoggedIn)
    return event.plugin


def refused(client: LoginClient) -> tuple[str, bytes]:
    """The reason for the log, and the error that the client was sent."""
    event, closed = client.run()
    assert isinstance(event, LoginRefused)
    assert isinstance(closed, Closed)
    assert client.side.state is State.CLOSED
    return event.reason, client.said[-1][1]


# --- every plugin with every kind of secret --------------------------------------------------------------------------


@pytest.mark.parametrize("plugin", PLUGINS)
@pytest.mark.parametrize("password", [PASSWORD, "pass wörd", "x" * 200])
def test_a_password_is_right_by_every_plugin_that_a_client_proposes(plugin: str, password: str) -> None:
    side = machine(Account.with_password("repl", password))
    assert logged_in_by(LoginClient(side, password=password, plugin=plugin)) == plugin


@pytest.mark.parametrize("plugin", PLUGINS)
@pytest.mark.parametrize("wrong", ["", "s3cre", "s3cret ", "S3CRET", "x" * 300])
def test_a_wrong_password_is_refused_by_every_plugin(plugin: str, wrong: str) -> None:
    reason, answer = refused(
        LoginClient(machine(Account.with_password("repl", PASSWORD)), password=wrong, plugin=plugin)
    )
    used = b"YES" if wrong or plugin == "client_ed25519" else b"NO"
    assert reason == "wrong password"
    assert answer == b"\xff\x15\x04#28000Access denied for user 'repl'@'192.0.2.1' (using password: %s)" % used


@pytest.mark.parametrize(
    ("stored", "plugin"), list(zip([NATIVE, CACHING_SHA2, ED25519], PLUGINS, strict=True)), ids=PLUGINS
)
@pytest.mark.parametrize("proposed", [*PLUGINS, "sha256_password"])
def test_what_a_real_server_stored_is_checked_whatever_the_client_proposes(
    stored: str, plugin: str, proposed: str
) -> None:
    side = machine(Account("repl", Credentials.from_stored(stored)))
    assert logged_in_by(LoginClient(side, password=STORED_PASSWORD, plugin=proposed)) == plugin


@pytest.mark.parametrize("plugin", ["mysql_native_password", "caching_sha2_password"])
def test_an_empty_password_is_right_for_an_account_without_one_only(plugin: str) -> None:
    side = machine(Account.with_password("repl", ""))
    assert logged_in_by(LoginClient(side, password="", plugin=plugin)) == plugin
    refused(LoginClient(machine(Account.with_password("repl", "")), password="x", plugin=plugin))


@pytest.mark.parametrize("plugin", PLUGINS)
@pytest.mark.parametrize("proposed", PLUGINS)
def test_an_account_with_a_plugin_logs_in_with_that_one_only(plugin: Any, proposed: str) -> None:
    side = machine(Account("repl", Credentials.from_password(PASSWORD), plugin=plugin))
    assert logged_in_by(LoginClient(side, plugin=proposed)) == plugin


def test_a_client_without_plugins_logs_in_by_native() -> None:
    client = LoginClient(
        machine(Account.with_password("repl", PASSWORD)), plugin="mysql_native_password", capabilities=BEFORE_PLUGINS
    )
    assert logged_in_by(client) == "mysql_native_password"


def test_a_client_without_plugins_is_too_old_for_another_one() -> None:
    client = LoginClient(
        machine(Account("repl", stored_sha2())), plugin="mysql_native_password", capabilities=BEFORE_PLUGINS
    )
    reason, answer = refused(client)
    assert "too old" in reason
    assert answer.startswith(b"\xff\xe3\x04#08004Client does not support authentication protocol")


def test_the_greeting_proposes_native_unless_nobody_can_use_it() -> None:
    def proposed(*accounts: Account) -> bytes:
        return machine(Accounts(accounts, secret=bytes(32))).bytes_to_send().rstrip(b"\0").rpartition(b"\0")[2]

    sha2 = Account("a", stored_sha2())
    assert proposed(sha2) == b"caching_sha2_password"
    assert proposed(sha2, Account.with_password("b", "x")) == b"mysql_native_password"
    assert proposed() == b"mysql_native_password"
    assert proposed(Account("c", Credentials.from_stored(ED25519))) == b"mysql_native_password"


# --- caching_sha2_password, full ------------------------------------------------------------------------------------


def test_full_authentication_over_tls_takes_the_password_in_clear_and_the_next_login_is_fast() -> None:
    accounts = Accounts([Account("repl", stored_sha2())], secret=bytes(32))
    first = TlsClient(over_tls(accounts), tls=True)
    assert logged_in_by(first) == "caching_sha2_password"
    assert (1, first.said[-2][1]) == (first.works, b"\x01\x04")
    second = TlsClient(over_tls(accounts), tls=True)
    logged_in_by(second)
    assert (0, second.said[-2][1]) == (second.works, b"\x01\x03")


def test_full_authentication_on_a_clear_connection_takes_the_password_encrypted() -> None:
    client = LoginClient(machine(Account("repl", stored_sha2())))
    assert logged_in_by(client) == "caching_sha2_password"
    assert [payload[:27] for _, payload in client.said[1:-1]] == [b"\x01\x04", b"\x01-----BEGIN PUBLIC KEY-----"]


def test_packet_numbers_run_on_through_full_authentication() -> None:
    client = LoginClient(machine(Account("repl", stored_sha2())))
    client.run()
    assert [sequence for sequence, _ in client.said] == [0, 2, 4, 6]


def test_a_password_in_clear_on_a_clear_connection_is_refused_unchecked() -> None:
    client = LoginClient(machine(Account("repl", stored_sha2())), asks_for_key=False)
    client.run()
    client.send(PASSWORD.encode() + b"\0")
    assert (client.works, client.side.state) == (0, State.CLOSED)


def test_the_key_is_given_once() -> None:
    client = LoginClient(machine(Account("repl", stored_sha2())), asks_for_key=False)
    client.run()
    client.send(b"\x02")
    client.send(b"\x02")
    assert (client.works, client.side.state) == (1, State.CLOSED)


@pytest.mark.parametrize("data", [bytes(256), b"\xff" * 256])
def test_what_is_not_encrypted_with_the_key_is_a_wrong_password(data: bytes) -> None:
    client = LoginClient(machine(Account("repl", stored_sha2())), asks_for_key=False)
    client.run()
    client.send(data)
    assert isinstance(client.events[0], LoginRefused)


@pytest.mark.parametrize("data", [b"", PASSWORD.encode(), b"\0", b"x" * 257 + b"\0", b"x" * 60000 + b"\0"], ids=len)
def test_a_password_over_tls_that_is_none_is_refused(data: bytes) -> None:
    client = TlsClient(over_tls(Account("repl", stored_sha2())), asks_for_key=False)
    client.run()
    client.send(data)
    assert isinstance(client.events[0], LoginRefused)


def test_the_known_digest_lasts_as_long_as_the_account_stays_the_same() -> None:
    account, other = Account("repl", stored_sha2()), Account("repl", stored_sha2(salt=b"09876543210987654321"))
    accounts = Accounts([account], secret=bytes(32), rsa_key=one_key)
    LoginClient(machine(accounts)).run()
    same, changed = accounts.replaced([account, Account.with_password("b", "b")]), accounts.replaced([other])
    for replaced, works in ((same, 0), (changed, 2), (changed.replaced([account]), 2)):
        client = LoginClient(machine(replaced))
        client.run()
        assert client.works == works


def test_a_failed_full_authentication_makes_no_digest_known() -> None:
    accounts = Accounts([Account("repl", stored_sha2())], secret=bytes(32), rsa_key=one_key)
    refused(LoginClient(machine(accounts), password="wrong"))
    assert not accounts.digests


# --- who is there is nobody's business ------------------------------------------------------------------------------


def masked(client: LoginClient) -> list[tuple[int, bytes]]:
    """What was said, without what is random and without the user's name."""
    found = []
    for sequence, payload in client.said[1:]:
        if payload[:1] == b"\xfe":
            name, _, challenge = payload.partition(b"\0")
            payload = name + b" and %d bytes" % len(challenge)
        found.append((sequence, payload.replace(b"'%s'" % client.user.encode(), b"'X'")))
    return found


SHAPES = {
    "password": Credentials.from_password(PASSWORD),
    "native hash": Credentials.from_stored(NATIVE),
    "sha2 hash": stored_sha2(),
    "ed25519 key": Credentials.from_stored(ED25519),
}


@pytest.mark.parametrize("proposed", [*PLUGINS, "sha256_password"])
@pytest.mark.parametrize("shape", SHAPES)
def test_an_unknown_user_a_wrong_host_and_a_wrong_password_get_the_same_packets_and_the_same_work(
    shape: str, proposed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*arguments: Any, **options: Any) -> Any:
            calls.append(name)
            return function(*arguments, **options)

        return wrapper

    elsewhere = HostPattern.parse("198.51.100.0/24")
    accounts = Accounts(
        [Account("repl", SHAPES[shape]), Account("far", SHAPES[shape], host=elsewhere)],
        secret=bytes(32),
        rsa_key=one_key,
    )
    for name in ("sha1", "sha256"):
        monkeypatch.setattr(hashlib, name, counted(name, getattr(hashlib, name)))
    seen = []
    for user in ("repl", "nobody", "far"):
        client = LoginClient(machine(accounts), user=user, password="wrong", plugin=proposed)
        calls.clear()
        reason, _ = refused(client)
        seen.append((masked(client), client.works, sorted(calls)))
        assert (reason == "wrong password") == (user == "repl")
    assert seen[0] == seen[1] == seen[2]


def test_a_wrong_password_looks_the_same_when_the_digest_is_known() -> None:
    accounts = Accounts([Account("repl", stored_sha2())], secret=bytes(32), rsa_key=one_key)
    LoginClient(machine(accounts)).run()
    assert accounts.digests
    wrong, unknown = (LoginClient(machine(accounts), user=user, password="wrong") for user in ("repl", "nobody"))
    refused(wrong)
    refused(unknown)
    assert masked(wrong) == masked(unknown)


def test_an_unknown_user_looks_the_same_each_time_and_as_one_of_the_accounts() -> None:
    accounts = Accounts(
        [Account(name, shape) for name, shape in SHAPES.items()], secret=os.urandom(32), rsa_key=one_key
    )

    def shape_of(user: str) -> tuple[str, ...]:
        client = LoginClient(machine(accounts), user=user, password="wrong")
        client.run()
        return tuple(str(line) for line in masked(client))

    known = {shape_of(name) for name in SHAPES}
    strangers = {f"user{number}": shape_of(f"user{number}") for number in range(60)}
    assert set(strangers.values()) == known
    assert all(shape_of(user) == shape for user, shape in itertools.islice(strangers.items(), 5))


def test_the_decoy_of_one_process_tells_nothing_about_another() -> None:
    accounts = [Account(name, shape) for name, shape in SHAPES.items()]
    shapes = [
        [Accounts(accounts, secret=bytes((number,)) * 32).find(f"user{user}", "").account.plugins for user in range(20)]
        for number in range(2)
    ]
    assert shapes[0] != shapes[1]


def test_no_decoy_is_ever_let_in(monkeypatch: pytest.MonkeyPatch) -> None:
    accounts = Accounts([Account.with_password("repl", PASSWORD)], secret=bytes(32))
    secret = accounts.find("nobody", "").account.credentials
    assert secret.native is not None
    # Somebody who has the decoy's own hash still has no account.
    monkeypatch.setattr("protocol.auth.native.native_matches", lambda *_: True)
    assert refused(LoginClient(machine(accounts), user="nobody", plugin="mysql_native_password"))[0].startswith(
        "no account"
    )


# --- what an account requires besides -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("requirement", "tls", "certificate", "reason"),
    [
        ("require_tls", False, False, "the account requires TLS"),
        ("require_tls", True, False, None),
        ("require_client_cert", False, False, "the account requires a client certificate"),
        ("require_client_cert", True, False, "the account requires a client certificate"),
        ("require_client_cert", True, True, None),
    ],
)
def test_what_an_account_requires_is_checked_behind_its_password(
    requirement: str, tls: bool, certificate: bool, reason: str | None
) -> None:
    account = Account("repl", Credentials.from_password(PASSWORD), **{requirement: True})  # type: ignore[arg-type]

    def attempt(password: str) -> LoginClient:
        if tls:
            return TlsClient(over_tls(account, certificate=certificate), password=password, tls=True)
        return LoginClient(machine(account), password=password)

    assert refused(attempt("wrong"))[0] == "wrong password"
    if reason is None:
        logged_in_by(attempt(PASSWORD))
    else:
        assert refused(attempt(PASSWORD)) == (reason, refused(attempt("wrong"))[1])


# --- TLS ------------------------------------------------------------------------------------------------------------

SSL_REQUEST = frame_payload(struct.pack("<IIB23x", 0x00BFA285 | Capability.SSL, 1 << 24, 33), 1)


def test_tls_is_offered_only_where_it_is_there() -> None:
    def offers(side: SourceSide) -> bool:
        payload = side.bytes_to_send()[4:]
        start = payload.index(b"\0") + 14
        return bool(int.from_bytes(payload[start : start + 2], "little") & Capability.SSL)

    account = Account.with_password("repl", PASSWORD)
    assert (offers(machine(account)), offers(machine(account, tls=True))) == (False, True)


def test_what_comes_behind_the_request_for_tls_belongs_to_tls() -> None:
    side = machine(Account.with_password("repl", PASSWORD), tls=True)
    side.bytes_to_send()
    assert side.receive(SSL_REQUEST + b"\x16\x03\x01hello", 100.0) == [TlsRequested(b"\x16\x03\x01hello")]
    assert side.bytes_to_send() == b""
    with pytest.raises(IllegalInput):
        side.receive(b"more", 100.0)


def test_tls_is_not_asked_for_twice() -> None:
    side = over_tls(Account.with_password("repl", PASSWORD))
    again = frame_payload(struct.pack("<IIB23x", 0x00BFA285 | Capability.SSL, 1 << 24, 33), 2)
    (event,) = side.receive(again, 100.0)
    assert isinstance(event, Closed)
    assert event.error is not None
    assert event.error.number == ErrorCode.ER_HANDSHAKE_ERROR


def test_nothing_is_said_in_clear_to_a_client_that_waits_for_tls() -> None:
    for end in (lambda side: side.pass_time(105.0), lambda side: side.tls_failed("no TLS")):
        side = machine(Account.with_password("repl", PASSWORD), tls=True)
        side.bytes_to_send()
        side.receive(SSL_REQUEST, 100.0)
        assert isinstance(end(side)[0], Closed)
        assert side.bytes_to_send() == b""


# --- verdicts that are held -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("password", [PASSWORD, "wrong"])
def test_a_held_verdict_is_told_when_its_time_has_come_and_not_before(password: str) -> None:
    side = machine(Account.with_password("repl", PASSWORD), rule=lambda _account: Ruling(2.0))
    client = LoginClient(side, password=password)
    assert client.run() == []
    assert (side.state, side.next_deadline()) == (State.VERDICT_HELD, 102.0)
    assert side.receive(b"impatience", 101.0) == []
    assert (side.pass_time(101.9), side.bytes_to_send()) == ([], b"")
    side._input.clear()
    event = side.pass_time(102.0)[0]
    assert isinstance(event, LoggedIn if password == PASSWORD else LoginRefused)
    assert packets(side.bytes_to_send())[-1][1][:1] == (b"\0" if password == PASSWORD else b"\xff")


def test_the_fast_ok_of_caching_sha2_is_held_with_its_verdict() -> None:
    side = machine(Account.with_password("repl", PASSWORD), rule=lambda _account: Ruling(2.0))
    client = LoginClient(side)
    client.run()
    assert not [payload for _, payload in client.said if payload[:1] == b"\x01"]


def test_commands_that_came_while_a_verdict_was_held_are_answered_after_it() -> None:
    side = machine(Account.with_password("repl", PASSWORD), rule=lambda _account: Ruling(2.0))
    client = LoginClient(side)
    client.run()
    side.receive(frame_payload(b"\x0e", 0), 101.0)
    side.pass_time(102.0)
    assert [payload[:1] for _, payload in packets(side.bytes_to_send())] == [b"\x01", b"\x00", b"\x00"]


@pytest.mark.parametrize("password", [PASSWORD, "wrong"])
def test_a_ruling_may_refuse_a_right_password_too(password: str) -> None:
    blocked = AnsweredError(ErrorCode.ER_HOST_IS_BLOCKED, "blocked")
    client = LoginClient(
        machine(Account.with_password("repl", PASSWORD), rule=lambda _: Ruling(0, blocked)), password=password
    )
    assert refused(client)[1] == b"\xff\x69\x04#HY000blocked"


def test_what_an_account_is_shown_counts_from_its_first_command_on_also_of_those_that_came_ahead() -> None:
    shown = replace(FACTS, version="9.7.4")
    side = machine(Account.with_password("repl", PASSWORD), rule=lambda account: Ruling(2.0, facts=account and shown))
    LoginClient(side).run()
    side.receive(frame_payload(b"\x03SELECT VERSION()", 0), 101.0)
    assert side.session.facts is FACTS
    side.pass_time(102.0)
    assert b"9.7.4" in side.bytes_to_send()


def test_much_that_is_sent_ahead_asks_the_shell_to_stop_reading() -> None:
    side = machine(Account.with_password("repl", PASSWORD), rule=lambda _account: Ruling(2.0))
    LoginClient(side).run()
    assert not side.holds_unread_commands
    side.receive(bytes(100_000), 100.0)
    assert side.holds_unread_commands


# --- checks that take long ------------------------------------------------------------------------------------------


def waiting_for_a_check() -> tuple[SourceSide, CheckRequested]:
    side = machine(Account("repl", stored_sha2()))
    client = LoginClient(side, asks_for_key=False)
    client.run()
    (event,) = side.receive(frame_payload(bytes(256), 3), 100.0)
    assert isinstance(event, CheckRequested)
    assert side.state is State.CHECK_PENDING
    return side, event


def test_a_check_that_comes_too_late_is_taken_in_silence() -> None:
    side, event = waiting_for_a_check()
    assert isinstance(side.pass_time(105.0)[0], Closed)
    side.bytes_to_send()
    assert (side.answer_check(event.work(), 106.0), side.bytes_to_send()) == ([], b"")


def test_what_a_check_is_made_of_does_not_show() -> None:
    _, event = waiting_for_a_check()
    assert PASSWORD not in repr(event)


def test_the_keys_text_is_pem() -> None:
    body = one_key().public_pem.split(b"-----")[2]
    assert len(base64.b64decode(body)) == 294


# --- accounts that change during a login --------------------------------------------------------------------------------


class Reloaded:
    """Accounts that a reload replaces."""

    def __init__(self, credentials: Credentials) -> None:
        self.accounts = Accounts([Account("repl", credentials)], secret=bytes(32), rsa_key=one_key)

    def now(self) -> Accounts:
        return self.accounts

    def replace(self, *accounts: Account) -> None:
        self.accounts = self.accounts.replaced(accounts)


CHANGES: dict[str, list[Account]] = {
    "removed": [],
    "another password": [Account.with_password("repl", "another")],
    "from elsewhere only": [Account("repl", Credentials.from_password(PASSWORD), host=HostPattern.parse("10.0.0.1"))],
    "TLS is required": [Account("repl", Credentials.from_password(PASSWORD), require_tls=True)],
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("plugin", ["mysql_native_password", "caching_sha2_password", "client_ed25519"])
def test_who_was_greeted_before_a_reload_is_judged_by_the_accounts_of_after_it(change: str, plugin: str) -> None:
    known = Reloaded(Credentials.from_password(PASSWORD))
    client = LoginClient(machine(known.accounts, accounts_now=known.now), plugin=plugin)
    client.take_greeting()
    known.replace(*CHANGES[change])
    client.log_in()
    while client._answer():
        pass
    assert isinstance(client.events[0], LoginRefused)


@pytest.mark.parametrize("change", CHANGES)
def test_an_account_that_is_changed_while_its_password_is_checked_is_not_let_in(change: str) -> None:
    known = Reloaded(stored_sha2())
    side = machine(known.accounts, accounts_now=known.now)
    given = side.answer_check

    def changed_meanwhile(step: Step, now: float) -> list[Event]:
        known.replace(*CHANGES[change])
        return given(step, now)

    client = LoginClient(side)
    side.answer_check = changed_meanwhile  # type: ignore[method-assign]
    client.run()
    assert isinstance(client.events[0], LoginRefused) and "changed or removed" in client.events[0].reason


@pytest.mark.parametrize("change", CHANGES)
def test_an_answer_that_is_held_back_is_given_by_the_accounts_of_then(change: str) -> None:
    known = Reloaded(Credentials.from_password(PASSWORD))
    side = machine(known.accounts, rule=lambda _account: Ruling(hold_s=2.0), accounts_now=known.now)
    LoginClient(side).run()
    assert side.state is State.VERDICT_HELD
    known.replace(*CHANGES[change])
    events = side.pass_time(102.1)
    assert isinstance(events[0], LoginRefused) and "changed or removed" in events[0].reason


def test_a_reload_that_leaves_the_account_as_it_is_disturbs_no_login() -> None:
    known = Reloaded(Credentials.from_password(PASSWORD))
    client = LoginClient(machine(known.accounts, accounts_now=known.now))
    client.take_greeting()
    known.replace(Account.with_password("repl", PASSWORD), Account.with_password("more", PASSWORD))
    client.log_in()
    while client._answer():
        pass
    assert isinstance(client.events[0], LoggedIn)
