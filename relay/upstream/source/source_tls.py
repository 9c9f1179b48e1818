"""The proof of a server's identity: TLS and its public key as configured, and the meaning of a failed handshake."""

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from protocol.auth.client_login import LoginSecrets, Peer
from protocol.auth.rsa_key import ServerKey
from protocol.errors import ErrorCode
from relay.config.server_security import ServerSecurity
from relay.upstream.source.source_errors import FailureKind, UpstreamError

VERIFYING: Final = ("verify_ca", "verify_identity")
# CR_SSL_CONNECTION_ERROR


@dataclass(frozen=True, slots=True)
class SourceTls:
    """The security of a connection to a server. `mode` is disabled, preferred, required, verify_ca or verify_identity.

    With preferred it uses TLS if the source offers it and clear text otherwise, without a check of the certificate; with required it
    uses TLS, unchecked. With verify_ca the certificate must come from `ca`, or be in it; with verify_identity it must also be for the
    host, and without `ca` come from an authority that this system trusts. `certificate` and `key` are ours, if the account requires
    one. `public_key` is the server's, for a password that is sent without TLS. `section` (which contains these keys) and `who` are for
    messages.
    """

    mode: str = "preferred"
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    public_key: Path | None = None
    section: str = "source"
    who: str = "the source"

    @classmethod
    def of(cls, settings: ServerSecurity, section: str = "source", who: str = "the source") -> Self:
        """Return the security that a section of a configuration describes."""
        return cls(
            settings.ssl_mode, settings.ssl_ca, settings.ssl_cert, settings.ssl_key, settings.public_key, section, who
        )

    @property
    def verifies(self) -> bool:
        """True if the certificate is checked."""
        return self.mode in VERIFYING

    @property
    def proves_identity(self) -> bool:
        """True if only the server has a certificate that passes. Anyone can have one of an authority that the system trusts."""
        return self.mode == "verify_identity" or (self.mode == "verify_ca" and self.ca is not None)

    def peer(self, *, secured: bool) -> Peer:
        """Return what is known of the other side, once it is clear whether there is TLS."""
        if not secured:
            return Peer.CLEAR
        return Peer.VERIFIED if self.proves_identity else Peer.ENCRYPTED

    @property
    def required(self) -> bool:
        """True if a source without TLS is refused."""
        return self.mode not in ("disabled", "preferred")


def make_context(tls: SourceTls) -> ssl.SSLContext | None:
    """Return the context for this mode; None for "disabled". Blocking: reads files. Raises: UpstreamError for unusable files."""
    if tls.mode == "disabled":
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = tls.mode == "verify_identity"
    context.verify_mode = ssl.CERT_REQUIRED if tls.verifies else ssl.CERT_NONE
    if tls.verifies:
        if tls.ca is None:
            context.load_default_certs(ssl.Purpose.SERVER_AUTH)
        else:
            # This allows the server's own certificate in place of its authority's.
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
            try:
                context.load_verify_locations(cafile=str(tls.ca))
            except (OSError, ssl.SSLError) as error:
                raise _unusable(tls, "ssl_ca", tls.ca, error, "certificates in PEM form") from error
    if tls.certificate is not None:
        key = tls.key or tls.certificate
        try:
            # Without an answer to its question OpenSSL would ask for a passphrase on the terminal.
            context.load_cert_chain(str(tls.certificate), str(key), password=lambda: "")
        except (OSError, ssl.SSLError, ValueError) as error:
            what = "a certificate and its own key, in PEM form and without a passphrase"
            raise _unusable(
                tls, "ssl_cert", tls.certificate, error, f"{what} ({tls.section}.ssl_key is {key})"
            ) from error
    return context


def make_secrets(tls: SourceTls, password: str) -> LoginSecrets:
    """Return the secrets of a login. Blocking: reads the server's public key. Raises: UpstreamError for an unusable file."""
    if tls.public_key is None:
        return LoginSecrets(password)
    try:
        return LoginSecrets(password, ServerKey.from_pem(tls.public_key.read_bytes()))
    except (OSError, ValueError) as error:
        raise _unusable(tls, "public_key", tls.public_key, error, "the server's RSA public key in PEM form") from error


def _unusable(tls: SourceTls, option: str, path: Path, error: Exception, wanted: str) -> UpstreamError:
    reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
    return UpstreamError(
        FailureKind.AUTHENTICATION,
        f"{tls.section}.{option}: {path} cannot be used: {reason}",
        f"It must hold {wanted}, readable for the relay's user.",
        name="tls_files_unusable",
        number=ErrorCode.CR_SSL_CONNECTION_ERROR,
    )


def tls_not_offered(where: str, tls: SourceTls, flavour_hint: str = "") -> UpstreamError:
    """Return the error for a source without TLS if ssl_mode demands it."""
    return UpstreamError(
        FailureKind.AUTHENTICATION,
        f'{tls.who} {where}{flavour_hint} offers no TLS, and {tls.section}.ssl_mode is "{tls.mode}"',
        f'Give {tls.who} a certificate (ssl_cert, ssl_key), or write ssl_mode = "preferred" or "disabled".',
        name="tls_not_offered",
        number=ErrorCode.CR_SSL_CONNECTION_ERROR,
    )


def handshake_error(error: OSError, where: str, tls: SourceTls) -> UpstreamError:
    """Return the meaning of a failed handshake for the operator."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return UpstreamError(
            FailureKind.AUTHENTICATION,
            f'the certificate of {tls.who} {where} is refused (ssl_mode "{tls.mode}"): {error.verify_message}',
            f"{tls.section}.ssl_ca must be the authority that signed it"
            + (f", and it must name {tls.section}.host." if tls.mode == "verify_identity" else "."),
            name="tls_certificate_refused",
            number=ErrorCode.CR_SSL_CONNECTION_ERROR,
        )
    reason = getattr(error, "reason", None) or error.strerror or str(error) or "the source closed the connection"
    if str(reason) in _OLD_PROTOCOL:
        what = "offers TLS of a kind that is not accepted any more"
        if str(reason) == _NO_TLS_RECORD:
            what = "answers the TLS handshake with something that is not TLS 1.2 or 1.3, or no TLS at all"
        return UpstreamError(
            FailureKind.AUTHENTICATION,
            f"{tls.who} {where} {what} ({reason})",
            'The relay speaks TLS 1.2 and 1.3. Upgrade the source\'s TLS, or write ssl_mode = "disabled" and protect the way '
            "to it otherwise.",
            name="tls_too_old",
            number=ErrorCode.CR_SSL_CONNECTION_ERROR,
        )
    return UpstreamError(
        FailureKind.AUTHENTICATION,
        f"the TLS handshake with {tls.who} {where} failed: {reason}",
        f"If it asks for a client certificate, give {tls.section}.ssl_cert and {tls.section}.ssl_key; "
        'ssl_mode = "disabled" does without TLS.',
        name="tls_failed",
        number=ErrorCode.CR_SSL_CONNECTION_ERROR,
    )


_NO_TLS_RECORD: Final = "WRONG_VERSION_NUMBER"
_OLD_PROTOCOL: Final = frozenset(
    {
        "UNSUPPORTED_PROTOCOL",
        _NO_TLS_RECORD,
        "TLSV1_ALERT_PROTOCOL_VERSION",
        "NO_PROTOCOLS_AVAILABLE",
        "DH_KEY_TOO_SMALL",
        "EE_KEY_TOO_SMALL",
        "CA_MD_TOO_WEAK",
        "UNSAFE_LEGACY_RENEGOTIATION_DISABLED",
        "SSLV3_ALERT_HANDSHAKE_FAILURE",
    }
)
