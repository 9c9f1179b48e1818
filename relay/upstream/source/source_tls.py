"""TLS to the source: what the configuration asks for as an SSL context, and what a failed handshake means."""

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from relay.upstream.source.source_errors import FailureKind, UpstreamError

VERIFYING: Final = ("verify_ca", "verify_identity")
# CR_SSL_CONNECTION_ERROR
_SSL_ERROR: Final = 2026


@dataclass(frozen=True, slots=True)
class SourceTls:
    """How the connection is secured. mode: disabled, preferred, required, verify_ca or verify_identity.

    preferred: TLS where the source offers it, clear text where not, the certificate unchecked; required: TLS, unchecked.
    verify_ca: the certificate must come from `ca` (without one, from an authority this system trusts); verify_identity: and
    be for the host. `certificate` and `key`: ours, where the account asks for one.
    """

    mode: str = "preferred"
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None

    @property
    def required(self) -> bool:
        """Whether a source without TLS is refused."""
        return self.mode not in ("disabled", "preferred")


def make_context(tls: SourceTls) -> ssl.SSLContext | None:
    """The context for this mode; None for "disabled". Blocking: reads files. Raises: UpstreamError for unusable files."""
    if tls.mode == "disabled":
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = tls.mode == "verify_identity"
    context.verify_mode = ssl.CERT_REQUIRED if tls.mode in VERIFYING else ssl.CERT_NONE
    if tls.mode in VERIFYING:
        if tls.ca is None:
            context.load_default_certs(ssl.Purpose.SERVER_AUTH)
        else:
            try:
                context.load_verify_locations(cafile=str(tls.ca))
            except (OSError, ssl.SSLError) as error:
                raise _unusable("ssl_ca", tls.ca, error, "certificates in PEM form") from error
    if tls.certificate is not None:
        key = tls.key or tls.certificate
        try:
            # Without an answer to its question OpenSSL would ask for a passphrase on the terminal.
            context.load_cert_chain(str(tls.certificate), str(key), password=lambda: "")
        except (OSError, ssl.SSLError, ValueError) as error:
            what = "a certificate and its own key, in PEM form and without a passphrase"
            raise _unusable("ssl_cert", tls.certificate, error, f"{what} (source.ssl_key is {key})") from error
    return context


def _unusable(option: str, path: Path, error: Exception, wanted: str) -> UpstreamError:
    reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
    return UpstreamError(
        FailureKind.AUTHENTICATION,
        f"source.{option}: {path} cannot be used: {reason}",
        f"It must hold {wanted}, readable for the relay's user.",
        name="tls_files_unusable",
        number=_SSL_ERROR,
    )


def tls_not_offered(where: str, mode: str, flavour_hint: str = "") -> UpstreamError:
    """The error for a source without TLS where ssl_mode demands it."""
    return UpstreamError(
        FailureKind.AUTHENTICATION,
        f'the source {where}{flavour_hint} offers no TLS, and source.ssl_mode is "{mode}"',
        'Give the source a certificate (ssl_cert, ssl_key), or write ssl_mode = "preferred" or "disabled".',
        name="tls_not_offered",
        number=_SSL_ERROR,
    )


def handshake_error(error: OSError, where: str, tls: SourceTls) -> UpstreamError:
    """What a failed handshake means for the operator."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return UpstreamError(
            FailureKind.AUTHENTICATION,
            f'the certificate of the source {where} is refused (ssl_mode "{tls.mode}"): {error.verify_message}',
            "source.ssl_ca must be the authority that signed it"
            + (", and it must name source.host." if tls.mode == "verify_identity" else "."),
            name="tls_certificate_refused",
            number=_SSL_ERROR,
        )
    reason = getattr(error, "reason", None) or error.strerror or str(error) or "the source closed the connection"
    if str(reason) in _OLD_PROTOCOL:
        what = "offers TLS of a kind that is not accepted any more"
        if str(reason) == _NO_TLS_RECORD:
            what = "answers the TLS handshake with something that is not TLS 1.2 or 1.3, or no TLS at all"
        return UpstreamError(
            FailureKind.AUTHENTICATION,
            f"the source {where} {what} ({reason})",
            'The relay speaks TLS 1.2 and 1.3. Upgrade the source\'s TLS, or write ssl_mode = "disabled" and protect the way '
            "to it otherwise.",
            name="tls_too_old",
            number=_SSL_ERROR,
        )
    return UpstreamError(
        FailureKind.AUTHENTICATION,
        f"the TLS handshake with the source {where} failed: {reason}",
        'If the source asks for a client certificate, give source.ssl_cert and source.ssl_key; ssl_mode = "disabled" does '
        "without TLS.",
        name="tls_failed",
        number=_SSL_ERROR,
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
