"""TLS to the source: the context of each mode, and what files and handshakes that fail are called."""

import ssl
from pathlib import Path

import pytest

from relay.upstream.source.source_errors import FailureKind, UpstreamError
from relay.upstream.source.source_tls import SourceTls, handshake_error, make_context
from tests.support.certificates import Authority


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.make(tmp_path_factory.mktemp("authority"))


def test_disabled_needs_no_context() -> None:
    assert make_context(SourceTls("disabled")) is None


@pytest.mark.parametrize(
    ("mode", "verify", "names"),
    [
        ("preferred", ssl.CERT_NONE, False),
        ("required", ssl.CERT_NONE, False),
        ("verify_ca", ssl.CERT_REQUIRED, False),
        ("verify_identity", ssl.CERT_REQUIRED, True),
    ],
)
def test_each_mode_checks_what_it_says(authority: Authority, mode: str, verify: ssl.VerifyMode, names: bool) -> None:
    context = make_context(SourceTls(mode, authority.certificate))
    assert context is not None
    assert (context.verify_mode, context.check_hostname) == (verify, names)
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2


def test_verifying_without_an_authority_trusts_the_systems() -> None:
    context = make_context(SourceTls("verify_ca"))
    assert context is not None and context.verify_mode is ssl.CERT_REQUIRED


def test_an_authority_that_holds_no_certificate_is_named(tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    path.write_text("nothing\n")
    with pytest.raises(UpstreamError, match=r"source\.ssl_ca") as caught:
        make_context(SourceTls("verify_ca", path))
    assert (caught.value.kind, caught.value.number) == (FailureKind.AUTHENTICATION, 2026)


def test_a_key_that_is_another_certificates_is_named(authority: Authority) -> None:
    one, other = authority.client("one"), authority.client("other")
    with pytest.raises(UpstreamError, match=r"source\.ssl_cert") as caught:
        make_context(SourceTls("required", None, one.certificate, other.key))
    assert str(other.key) in caught.value.advice


def test_a_key_with_a_passphrase_asks_nobody(authority: Authority, tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization

    files = authority.client("locked")
    key = serialization.load_pem_private_key(files.key.read_bytes(), None)
    locked = tmp_path / "locked.key"
    locked.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"passphrase"),
        )
    )
    with pytest.raises(UpstreamError, match=r"source\.ssl_cert") as caught:
        make_context(SourceTls("required", None, files.certificate, locked))
    assert "without a passphrase" in caught.value.advice


@pytest.mark.parametrize(
    ("reason", "name"),
    [
        ("UNSUPPORTED_PROTOCOL", "tls_too_old"),
        ("TLSV1_ALERT_PROTOCOL_VERSION", "tls_too_old"),
        ("TLSV13_ALERT_CERTIFICATE_REQUIRED", "tls_failed"),
    ],
)
def test_a_failed_handshake_is_told_apart(reason: str, name: str) -> None:
    error = ssl.SSLError(1, f"[SSL: {reason}] words")
    error.reason = reason
    made = handshake_error(error, "db:3306", SourceTls("preferred"))
    assert (made.name, made.kind) == (name, FailureKind.AUTHENTICATION)
    assert reason in made.what


def test_a_connection_that_is_closed_in_the_handshake_is_one_that_failed() -> None:
    made = handshake_error(ConnectionResetError(), "db:3306", SourceTls("required"))
    assert made.name == "tls_failed" and "closed the connection" in made.what
