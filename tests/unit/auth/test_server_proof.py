"""What MariaDB 11.8.6 itself sent at the end of logins over TLS, and when the relay sends the like."""

import hashlib

import pytest

from protocol.auth.account import Account
from protocol.auth.accounts import Accounts
from protocol.auth.authenticator import Channel, Plugin
from protocol.auth.credentials import Credentials
from protocol.auth.login_exchange import Accepted, LoginExchange
from protocol.auth.native import native_token
from protocol.auth.rsa_key import RsaKey
from protocol.auth.server_proof import server_proof
from protocol.capabilities import Capability
from protocol.handshake import Login
from protocol.packets import ok_payload

PASSWORD = "p"
# SHA-256 of the certificate that it had made for itself.
CERTIFICATE = bytes.fromhex("6f7fb4b8046695d4a638f9b0615720b372493ec5ffeb1557996801297aebbc09")
# (stored secret, the greeting's scramble, the text of its OK), one by each plugin that proves something.
RECORDED = {
    "mysql_native_password": (
        bytes.fromhex("7b9ebeed26aa52ed10c0f549fa863f13c39e0209"),
        b"+EZt[I:'UV1/7f|^@f_,",
        b"\x01F2EC5425979F34447294155EE65128AE72398CBDC2CB101001511995C570D90C",
    ),
    "client_ed25519": (
        bytes.fromhex("66d27ac31292059d6cc9bc594819c180fa6c6ec98dcf5d99c5c8fa191d663ce6"),
        b"zn:u^X!6/&p&fP@0mWIJ",
        b"\x0182ABD8CEA38D9EFF9EF6356D51D549EC9DB9FD1E6A2ECFB57BE420BC60EA8EB1",
    ),
}


@pytest.mark.parametrize("plugin", list(RECORDED))
def test_the_proof_is_what_mariadb_118_sent(plugin: str) -> None:
    stored, scramble, text = RECORDED[plugin]
    assert server_proof(stored, scramble, CERTIFICATE) == text


def test_the_ok_that_carries_it_is_the_packet_of_mariadb_118() -> None:
    text = RECORDED["mysql_native_password"][2]
    assert ok_payload(text=text) == b"\x00\x00\x00\x02\x00\x00\x00\x41" + text


def exchange(scramble: bytes, channel: Channel, greeting_plugin: Plugin = "mysql_native_password") -> LoginExchange:
    """A login by mysql_native_password of the account that was recorded, not begun yet."""
    account = Account("na", Credentials.from_password(PASSWORD))
    accounts = Accounts([account], secret=bytes(32), rsa_key=RsaKey.new)
    token = native_token(PASSWORD, scramble)
    capabilities = Capability.PLUGIN_AUTH | Capability.SSL
    return LoginExchange(
        Login("na", token, "mysql_native_password", "", capabilities, 45, 1 << 24, {}),
        accounts,
        address="192.0.2.1",
        greeting_plugin=greeting_plugin,
        scramble=scramble,
        channel=channel,
        random_bytes=lambda count: bytes(range(count)),
    )


def test_a_login_over_tls_is_accepted_with_the_proof() -> None:
    _, scramble, text = RECORDED["mysql_native_password"]
    login = exchange(scramble, Channel("TLSv1.3", certificate_digest=CERTIFICATE))
    assert isinstance(login.begin(), Accepted)
    assert login.proof() == text


def test_a_login_in_clear_is_accepted_without_one() -> None:
    login = exchange(RECORDED["mysql_native_password"][1], Channel())
    assert isinstance(login.begin(), Accepted)
    assert login.proof() == b""


def test_after_a_switch_to_native_the_proof_is_made_with_the_scramble_of_the_switch() -> None:
    stored, scramble, text = RECORDED["mysql_native_password"]
    login = exchange(scramble, Channel("TLSv1.3", certificate_digest=CERTIFICATE), "caching_sha2_password")
    switch = login.begin()
    sent = getattr(switch, "challenge", b"")[:-1]
    assert len(sent) == 20 and sent != scramble
    assert isinstance(login.respond(native_token(PASSWORD, sent)), Accepted)
    assert login.proof() == server_proof(stored, sent, CERTIFICATE) != text


def test_an_account_without_a_password_proves_nothing() -> None:
    accounts = Accounts([Account("na", Credentials.from_password(""))], secret=bytes(32), rsa_key=RsaKey.new)
    login = LoginExchange(
        Login("na", b"", "mysql_native_password", "", Capability.PLUGIN_AUTH, 45, 1 << 24, {}),
        accounts,
        address="192.0.2.1",
        greeting_plugin="mysql_native_password",
        scramble=hashlib.sha1(b"scramble").digest(),
        channel=Channel("TLSv1.3", certificate_digest=CERTIFICATE),
        random_bytes=lambda count: bytes(range(count)),
    )
    assert isinstance(login.begin(), Accepted)
    assert login.proof() == b""
