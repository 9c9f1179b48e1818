"""The certificates that TLS tests are made with: each variant fails for the one reason it is named after."""

import socket
import ssl
import threading
from pathlib import Path

import pytest

from tests.support.certificates import Authority, CertificateFiles


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority.make(tmp_path / "ca")


def shake_hands(server: CertificateFiles, trusted: Path, client: CertificateFiles | None = None) -> None:
    """A TLS handshake over a socket pair, the server's name 127.0.0.1; with `client`, both sides verify.

    Raises: ssl.SSLError as the client, or else the server, met it.
    """
    offers = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    offers.load_cert_chain(server.certificate, server.key)
    wants = ssl.create_default_context(cafile=str(trusted))
    if client is not None:
        offers.load_verify_locations(client.authority)
        offers.verify_mode = ssl.CERT_REQUIRED
        wants.load_cert_chain(client.certificate, client.key)
    met: list[BaseException] = []

    def serve(link: socket.socket) -> None:
        try:
            with offers.wrap_socket(link, server_side=True) as encrypted:
                encrypted.sendall(b"hello")
        except (ssl.SSLError, OSError) as error:
            met.append(error)
        finally:
            link.close()

    near, far = socket.socketpair()
    thread = threading.Thread(target=serve, args=(far,))
    thread.start()
    try:
        with near, wants.wrap_socket(near, server_hostname="127.0.0.1") as encrypted:
            assert encrypted.recv(5) == b"hello"
    finally:
        thread.join()
    assert not met


@pytest.mark.parametrize("rsa_keys", [False, True], ids=["curve", "rsa"])
def test_both_sides_accept_what_the_authority_signed(authority: Authority, rsa_keys: bool) -> None:
    server = authority.server(rsa_keys=rsa_keys)
    shake_hands(server, authority.certificate, authority.client(rsa_keys=rsa_keys))


def test_another_authoritys_certificate_is_not_trusted(authority: Authority, tmp_path: Path) -> None:
    other = Authority.make(tmp_path / "other", name="somebody else")
    with pytest.raises(ssl.SSLCertVerificationError, match="unable to get local issuer"):
        shake_hands(authority.server(), other.certificate)


def test_an_expired_certificate_is_refused_as_expired(authority: Authority) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
        shake_hands(authority.server(valid_days=-1), authority.certificate)


def test_another_hosts_certificate_is_refused_for_its_name(authority: Authority) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="IP address mismatch"):
        shake_hands(authority.server(hosts=["db.example"]), authority.certificate)


def test_keys_are_readable_by_their_owner_only(authority: Authority) -> None:
    assert authority.server().key.stat().st_mode & 0o777 == 0o600
    assert authority.client().key.stat().st_mode & 0o777 == 0o600
