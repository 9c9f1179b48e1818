"""The relay's own certificate, key and trusted authority, as its TLS needs them.

OpenSSL's own words for a wrong file are of little help ("NO_START_LINE", "KEY_VALUES_MISMATCH"), and for an encrypted key it would
ask at the terminal: files are checked before it gets them.
"""

import datetime
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from protocol.errors import ExitCode, RelayError

_MAKE_PAIR: Final = "Give the certificate and the key that was made for it"


class CertificateError(RelayError):
    """A file that cannot be used. `part`: "cert", "key" or "client_ca". `advice`: without a full stop, as in relay.toml's problems."""

    exit_code = ExitCode.WRONG_USE

    def __init__(self, part: str, what: str, advice: str) -> None:
        super().__init__(what, advice)
        self.part = part


@dataclass(frozen=True, slots=True)
class ServerTls:
    """TLS as it is offered. `subject`, `valid_from`, `valid_until`: of the certificate, for logs and checks."""

    context: ssl.SSLContext
    subject: str
    valid_from: datetime.datetime
    valid_until: datetime.datetime
    digest: bytes
    """The SHA-256 of the certificate."""

    def problem(self, now: datetime.datetime) -> str | None:
        """Return the reason why peers that check certificates would refuse it now; None: they would not."""
        if now < self.valid_from:
            return f"is not valid before {self.valid_from:%Y-%m-%d %H:%M} UTC"
        if now > self.valid_until:
            return f"has expired on {self.valid_until:%Y-%m-%d %H:%M} UTC"
        return None


def described(tls: ServerTls | None) -> dict[str, str]:
    """Return what replicas are shown, for the log."""
    if tls is None:
        return {"tls": "off"}
    return {"tls": "on", "certificate": tls.subject, "valid_until": f"{tls.valid_until:%Y-%m-%dT%H:%M:%SZ}"}


def load_server_tls(certificate: Path, key: Path, client_ca: Path | None) -> ServerTls:
    """Return TLS 1.2 and later with this certificate; clients may show one of their own if `client_ca` is given.

    Blocking; a millisecond or two. Raises: CertificateError.
    """
    leaf = _certificates("cert", certificate)[0]
    _check_key(key, leaf)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION | ssl.OP_CIPHER_SERVER_PREFERENCE
    try:
        # Encrypted keys were refused; the password is for what only OpenSSL takes for one.
        context.load_cert_chain(certificate, key, password="")
    except (ssl.SSLError, OSError) as error:
        what = f"{certificate} is refused by OpenSSL ({_reason(error)})"
        raise CertificateError("cert", what, "RSA keys need 2048 bits or more, signatures SHA-256") from None
    if client_ca is not None:
        _certificates("client_ca", client_ca)
        try:
            context.load_verify_locations(client_ca)
        except (ssl.SSLError, OSError) as error:
            what = f"{client_ca} is refused by OpenSSL ({_reason(error)})"
            raise CertificateError("client_ca", what, "Write a file of certificates in PEM form") from None
        context.verify_mode = ssl.CERT_OPTIONAL
    return ServerTls(
        context,
        leaf.subject.rfc4514_string(),
        leaf.not_valid_before_utc,
        leaf.not_valid_after_utc,
        leaf.fingerprint(SHA256()),
    )


def _certificates(part: str, path: Path) -> list[x509.Certificate]:
    data = _read(part, path)
    try:
        return x509.load_pem_x509_certificates(data)
    except ValueError:
        what = f"{path} holds no certificate in PEM form"
        raise CertificateError(part, what, "It begins with -----BEGIN CERTIFICATE-----") from None


def _check_key(path: Path, certificate: x509.Certificate) -> None:
    data = _read("key", path)
    try:
        key = load_pem_private_key(data, password=None)
    except TypeError:
        instead = f"Write it without a password: openssl pkey -in {path} -out FILE; protect FILE by its permissions"
        raise CertificateError("key", f"{path} is encrypted with a password", instead) from None
    except (ValueError, UnsupportedAlgorithm):
        what = f"{path} holds no private key in PEM form"
        raise CertificateError("key", what, "It begins with -----BEGIN PRIVATE KEY-----") from None
    form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if key.public_key().public_bytes(*form) != certificate.public_key().public_bytes(*form):
        raise CertificateError("key", f"{path} is the key of another certificate", _MAKE_PAIR)


def _read(part: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        what = f"{path} cannot be read ({error.strerror})"
        raise CertificateError(part, what, "Create it, or give this user read permission") from None


def _reason(error: OSError) -> str:
    reason = error.reason if isinstance(error, ssl.SSLError) else error.strerror
    return (reason or type(error).__name__).replace("_", " ").lower()
