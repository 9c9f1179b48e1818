"""Secrets as servers store them, against what real servers stored."""

import base64
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.auth.caching_sha2 import StoredSha2
from protocol.auth.credentials import Credentials
from protocol.auth.ed25519 import ed25519_public_key
from protocol.auth.sha_crypt import sha256_crypt
from tests.support.stored_hashes import CACHING_SHA2, ED25519, NATIVE, PASSWORD


def test_a_password_gives_what_mariadb_stores_for_it() -> None:
    credentials = Credentials.from_password(PASSWORD)
    assert credentials.native == Credentials.from_stored(NATIVE).native
    assert credentials.ed25519 == Credentials.from_stored(ED25519).ed25519


def test_a_password_matches_what_mysql_stores_for_it() -> None:
    stored = Credentials.from_stored(CACHING_SHA2).sha2
    assert isinstance(stored, StoredSha2)
    assert stored.rounds == 10_000
    assert stored.matches(PASSWORD.encode())
    assert not stored.matches(PASSWORD.encode() + b" ")


def test_the_password_of_the_mariadb_manual_has_the_key_that_is_printed_there() -> None:
    assert base64.b64encode(ed25519_public_key("secret")) == b"ZIgUREUg5PVgQ6LskhXmO+eZLS0nC8be6HPjYWR4YJY="


# Made by glibc's crypt(3), "$5$rounds=5000$" and the salt.
@pytest.mark.parametrize(
    ("password", "salt", "encoded"),
    [
        ("Hello world!", "saltstring", "5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5"),
        ("x" * 70, "abc", "5ox4QOf8XoCKLSxoCXvmgZ1th6KC4nDv0o9/Fj2v2E/"),
        ("", "q" * 16, "FHBb9LOY8VDPi.neutIMhko74V1uTeSb4np8x6edjP4"),
        ("pässword", "0123456789abcdef", "zs1dpkJu8VhoQP34d9Q4lCRoI/6hz0kOEzx1r.qjdg9"),
        ("a" * 33, "z" * 16, "8s1zfF8UmhUZcMYDiEYmTbw88kHcomoTaw3Qo/BqwF2"),
    ],
)
def test_sha_crypt_is_that_of_the_c_library(password: str, salt: str, encoded: str) -> None:
    assert sha256_crypt(password.encode(), salt.encode(), 5000) == encoded.encode()


@pytest.mark.parametrize(
    ("text", "plugin"),
    [
        (NATIVE, "mysql_native_password"),
        (NATIVE.lower(), "mysql_native_password"),
        ("0x" + NATIVE.encode().hex(), "mysql_native_password"),
        (CACHING_SHA2, "caching_sha2_password"),
        ("0X" + CACHING_SHA2[2:].lower(), "caching_sha2_password"),
        ("$A$005$" + "\x01salt of 20 letter\x7f!" + "a" * 43, "caching_sha2_password"),
        (ED25519, "client_ed25519"),
        ("0x" + ED25519.encode().hex(), "client_ed25519"),
    ],
)
def test_each_kind_is_known_by_its_form(text: str, plugin: str) -> None:
    assert Credentials.from_stored(text).plugins == (plugin,)


@pytest.mark.parametrize(
    "text",
    [
        "", "*", NATIVE + "0", NATIVE[:-1], ED25519 + "=", ED25519[:-1], "0x", "0xzz", "0x2a", "$A$000$" + "s" * 20 + "a" * 43,
        "$A$005$" + "s" * 19 + "$" + "a" * 43, "$A$005$" + "s" * 20 + "a" * 42 + "!",
    ],
)  # fmt: skip
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a stored hash"):
        Credentials.from_stored(text)


@given(st.text(max_size=80))
def test_any_text_is_a_hash_or_is_refused(text: str) -> None:
    try:
        assert len(Credentials.from_stored(text).plugins) == 1
    except ValueError as error:
        assert "not a stored hash" in str(error)


def test_an_empty_password_is_stored_as_nothing() -> None:
    credentials = Credentials.from_password("")
    assert (credentials.native, credentials.sha2) == (b"", b"")


def test_a_password_knows_every_plugin() -> None:
    plugins = ("mysql_native_password", "caching_sha2_password", "client_ed25519")
    assert Credentials.from_password("x").plugins == plugins
    assert Credentials.from_password("x").native == hashlib.sha1(hashlib.sha1(b"x").digest()).digest()
