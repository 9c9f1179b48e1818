"""The client's half of a login: what each peer is given, by what it proved, and what it is not."""

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from protocol.auth.authenticator import CACHING_SHA2, ED25519, NATIVE
from protocol.auth.caching_sha2 import sha2_token
from protocol.auth.client_login import (
    CLEARTEXT,
    OLD,
    SHA256,
    ClientLogin,
    LoginSecrets,
    PasswordTooLong,
    PasswordWithheld,
    Peer,
    PluginNotOffered,
)
from protocol.auth.native import native_token
from protocol.auth.rsa_key import ServerKey
from protocol.errors import Malformed

PASSWORD = "geheim"
SCRAMBLE = b"abcdefghijklmnopqrst"
OK, FULL, FAST = b"\0\0\0\2\0\0\0", b"\1\4", b"\1\3"
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
SERVER_KEY = ServerKey(KEY.public_key())


def switch(plugin: str, challenge: bytes = SCRAMBLE) -> bytes:
    return b"\xfe" + plugin.encode() + b"\0" + challenge + b"\0"


def begun(
    peer: Peer = Peer.CLEAR, plugin: str = NATIVE, *, password: str = PASSWORD, key: ServerKey | None = None
) -> ClientLogin:
    login = ClientLogin(LoginSecrets(password, key), peer)
    login.first(plugin, SCRAMBLE)
    return login


def opened(cipher: bytes | None) -> bytes:
    """What the server reads."""
    assert cipher is not None
    plain = KEY.decrypt(cipher, padding.OAEP(padding.MGF1(SHA1()), SHA1(), None))
    return bytes(a ^ b for a, b in zip(plain, SCRAMBLE * 20, strict=False))


@pytest.mark.parametrize(
    ("proposed", "sent"),
    [
        (NATIVE, (NATIVE, native_token(PASSWORD, SCRAMBLE))),
        (CACHING_SHA2, (CACHING_SHA2, sha2_token(PASSWORD.encode(), SCRAMBLE))),
        (SHA256, (NATIVE, native_token(PASSWORD, SCRAMBLE))),
        (CLEARTEXT, (NATIVE, native_token(PASSWORD, SCRAMBLE))),
        ("", (NATIVE, native_token(PASSWORD, SCRAMBLE))),
    ],
)
def test_the_login_packet_has_a_token_and_never_the_password(proposed: str, sent: tuple[str, bytes]) -> None:
    assert ClientLogin(LoginSecrets(PASSWORD), Peer.CLEAR).first(proposed, SCRAMBLE + b"\0") == sent


def test_an_account_without_a_password_has_no_token() -> None:
    assert ClientLogin(LoginSecrets(""), Peer.CLEAR).first(NATIVE, SCRAMBLE) == (NATIVE, b"")


def test_ok_ends_it() -> None:
    login = begun()
    assert (login.answer(OK), login.is_over) == (None, True)


@pytest.mark.parametrize("plugin", [NATIVE, CACHING_SHA2])
def test_a_switch_is_answered_by_the_token_for_its_challenge(plugin: str) -> None:
    challenge = b"tsrqponmlkjihgfedcba"
    expected = native_token(PASSWORD, challenge) if plugin == NATIVE else sha2_token(PASSWORD.encode(), challenge)
    assert begun().answer(switch(plugin, challenge)) == expected


def test_ed25519_signs_for_anybody() -> None:
    signature = begun().answer(switch(ED25519, b"n" * 32))
    assert signature is not None and len(signature) == 64 and PASSWORD.encode() not in signature


def test_the_fast_way_of_caching_sha2_asks_for_nothing_more() -> None:
    login = begun(plugin=CACHING_SHA2)
    assert (login.answer(FAST), login.answer(OK), login.is_over) == (None, None, True)


@pytest.mark.parametrize("peer", Peer)
@pytest.mark.parametrize("key", [None, SERVER_KEY])
@pytest.mark.parametrize("way", [CACHING_SHA2, SHA256, CLEARTEXT])
def test_the_password_goes_to_whoever_proved_to_be_the_server(peer: Peer, key: ServerKey | None, way: str) -> None:
    login = begun(peer, CACHING_SHA2 if way == CACHING_SHA2 else NATIVE, key=key)
    asked = FULL if way == CACHING_SHA2 else switch(way)
    whole = PASSWORD.encode() + b"\0"
    if peer is Peer.VERIFIED:
        assert login.answer(asked) == whole
    elif peer is Peer.CLEAR and key is not None and way != CLEARTEXT:
        assert opened(login.answer(asked)) == whole
    else:
        with pytest.raises(PasswordWithheld) as caught:
            login.answer(asked)
        assert caught.value.what == way


def test_no_password_is_no_secret() -> None:
    assert begun(plugin=CACHING_SHA2, password="").answer(FULL) == b"\0"


def test_a_password_that_fits_into_no_block_of_the_key_is_told() -> None:
    with pytest.raises(PasswordTooLong):
        begun(plugin=CACHING_SHA2, password="x" * 300, key=SERVER_KEY).answer(FULL)


@pytest.mark.parametrize(("packet", "plugin"), [(b"\xfe", OLD), (switch("dialog"), "dialog"), (switch("x\xff"), "x")])
def test_a_plugin_that_nobody_offers_is_named(packet: bytes, plugin: str) -> None:
    with pytest.raises(PluginNotOffered) as caught:
        begun(Peer.VERIFIED).answer(packet)
    assert caught.value.what.startswith(plugin)


@pytest.mark.parametrize(
    "packet",
    [b"", b"\1\4", b"\7", switch(ED25519, b"short"), switch(NATIVE, b"short"), b"\1\5"],
)
def test_what_cannot_come_is_malformed(packet: bytes) -> None:
    with pytest.raises(Malformed):
        begun(plugin=CACHING_SHA2 if packet == b"\1\5" else NATIVE).answer(packet)


def test_a_challenge_that_is_too_short_is_encrypted_for_nobody() -> None:
    with pytest.raises(Malformed, match="challenge of 5 bytes"):
        begun(key=SERVER_KEY).answer(switch(SHA256, b"short")[:-1])


def test_a_peer_that_switches_for_ever_is_left() -> None:
    login = begun()
    with pytest.raises(Malformed, match="packets"):
        for _ in range(30):
            login.answer(switch(NATIVE))


@pytest.mark.parametrize(
    ("key", "why"),
    [
        (ec.generate_private_key(ec.SECP256R1()).public_key(), "another kind"),
        (rsa.generate_private_key(public_exponent=65537, key_size=1024).public_key(), "1024 bits"),
    ],
)
def test_a_file_with_another_key_is_refused(key: rsa.RSAPublicKey | ec.EllipticCurvePublicKey, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        ServerKey.from_pem(key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))


def test_a_file_without_a_key_is_refused_and_one_with_it_is_taken() -> None:
    with pytest.raises(ValueError, match="PEM"):
        ServerKey.from_pem(b"no key")
    pem = KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    assert ServerKey.from_pem(pem).encrypt(b"x", SCRAMBLE) is not None
