"""A throw-away certificate authority: what TLS tests need, made when they run, good for some days.

    authority = Authority.make(tmp_path / "certificates")
    server = authority.server(hosts=["127.0.0.1", "localhost"])      # paths: server.certificate, server.key
    client = authority.client("replica")
    other = Authority.make(tmp_path / "other", name="Somebody else")  # for "signed by the wrong one"
    late = authority.server("late", valid_days=-1)                     # for "expired yesterday"
    elsewhere = authority.server("elsewhere", hosts=["db.example"])    # for "another host's certificate"

Keys are on the P-256 curve unless rsa is asked for: made in a millisecond, understood by every server here.
"""

import datetime
import ipaddress
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LOOPBACK = ("127.0.0.1", "localhost")
VALID_DAYS = 7

_PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """A certificate and its private key as PEM files, and the authority that signed it."""

    certificate: Path
    key: Path
    authority: Path

    def server_options(self) -> list[str]:
        """Return the options by which a server of deploy.servers takes them; its account must be able to read the files."""
        return [f"--ssl-ca={self.authority}", f"--ssl-cert={self.certificate}", f"--ssl-key={self.key}"]


class Authority:
    """A certificate authority whose files are in `directory`; `certificate` is what others must trust."""

    def __init__(self, directory: Path, key: _PrivateKey, certificate: x509.Certificate) -> None:
        self.directory = directory
        self.certificate = directory / "ca.pem"
        self._key = key
        self._certificate = certificate

    @classmethod
    def make(cls, directory: Path, *, name: str = "binlog-relay tests", rsa_keys: bool = False) -> Self:
        """Create an authority; the directory is created if it is missing."""
        directory.mkdir(parents=True, exist_ok=True)
        directory.chmod(0o755)
        key = _new_key(rsa_keys)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = (
            _builder(subject, subject, key, VALID_DAYS)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(signs_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        )
        made = cls(directory, key, builder.sign(key, hashes.SHA256()))
        made.certificate.write_bytes(made._certificate.public_bytes(serialization.Encoding.PEM))
        return made

    def server(
        self,
        name: str = "server",
        *,
        hosts: Sequence[str] = LOOPBACK,
        valid_days: float = VALID_DAYS,
        rsa_keys: bool = False,
        owner: tuple[int, int] | None = None,
    ) -> CertificateFiles:
        """Return a server's certificate for these names and addresses.

        With a negative `valid_days` it expired that long ago. `owner` is uid and gid of the key's file, for a server that runs as
        another account.
        """
        return self._issue(name, ExtendedKeyUsageOID.SERVER_AUTH, hosts, valid_days, rsa_keys, owner)

    def client(
        self,
        name: str = "client",
        *,
        valid_days: float = VALID_DAYS,
        rsa_keys: bool = False,
        owner: tuple[int, int] | None = None,
    ) -> CertificateFiles:
        """Return a client's certificate with `name` as its subject."""
        return self._issue(name, ExtendedKeyUsageOID.CLIENT_AUTH, (), valid_days, rsa_keys, owner)

    def _issue(
        self,
        name: str,
        purpose: x509.ObjectIdentifier,
        hosts: Sequence[str],
        valid_days: float,
        rsa_keys: bool,
        owner: tuple[int, int] | None,
    ) -> CertificateFiles:
        key = _new_key(rsa_keys)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = (
            _builder(subject, self._certificate.subject, key, valid_days)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
            # Python 3.13 and later verify strictly: a certificate has to say whose key signed it.
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if hosts:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False
            )
        files = CertificateFiles(self.directory / f"{name}.pem", self.directory / f"{name}.key", self.certificate)
        certificate = builder.sign(self._key, hashes.SHA256())
        files.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        _write_key(files.key, key, owner)
        return files


def _new_key(rsa_keys: bool) -> _PrivateKey:
    return rsa.generate_private_key(65537, 2048) if rsa_keys else ec.generate_private_key(ec.SECP256R1())


def _builder(subject: x509.Name, issuer: x509.Name, key: _PrivateKey, valid_days: float) -> x509.CertificateBuilder:
    end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=valid_days)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # A day before everything: clocks of test machines jump.
        .not_valid_before(min(end, datetime.datetime.now(datetime.UTC)) - datetime.timedelta(days=1))
        .not_valid_after(end)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _write_key(path: Path, key: _PrivateKey, owner: tuple[int, int] | None) -> None:
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    form = serialization.PrivateFormat.PKCS8
    if isinstance(key, rsa.RSAPrivateKey):
        # The form with "RSA" in its first line: old servers read no other.
        form = serialization.PrivateFormat.TraditionalOpenSSL
    path.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
    if owner is not None and os.geteuid() == 0:
        os.chown(path, *owner)
