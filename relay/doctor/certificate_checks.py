"""The expiry of certificates. Blocking: reads files."""

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from cryptography import x509

from protocol.printable import printable
from relay.config import Config
from relay.doctor.doctor_line import DoctorLine, Level

_WARNING_DAYS: Final = 30


def certificate_lines(config: Config, now: datetime.datetime) -> Iterator[DoctorLine]:
    """Yield a line for each certificate that relay.toml names, by its key."""
    named: dict[str, Path | None] = {
        "listen.tls_cert": config.listen.tls_cert,
        "listen.tls_client_ca": config.listen.tls_client_ca,
        "http.tls_cert": config.http.tls_cert if config.http.enabled else None,
    }
    for number, source in enumerate(config.sources, start=1):
        prefix = "source" if number == 1 else f"source#{number}"
        named[f"{prefix}.ssl_ca"] = source.ssl_ca
        named[f"{prefix}.ssl_cert"] = source.ssl_cert
    for key, path in named.items():
        if path is not None:
            yield _file_line(key, path, now)


def _file_line(key: str, path: Path, now: datetime.datetime) -> DoctorLine:
    try:
        held = x509.load_pem_x509_certificates(path.read_bytes())
    except (OSError, ValueError) as error:
        text = f"{path} cannot be read as certificates: {error}"
        return DoctorLine(
            key, "certificate", "problem", printable(text), "Name a PEM file that the relay's user can read."
        )
    # In an authority's file the one that lasts longest may be the one that counts; in the relay's own file it is the first.
    is_authority = key.endswith("_ca")
    chosen = max(held, key=lambda one: one.not_valid_after_utc) if is_authority else held[0]
    cure = "Have it renewed" + (", then send SIGHUP to the relay." if key.startswith(("listen", "http")) else ".")
    return date_line(key, str(path), chosen, now, cure)


def shown_certificate_line(about: str, der: bytes, now: datetime.datetime, *, checked: bool) -> DoctorLine:
    """Return the line for the certificate that a server showed. checked: whether the relay refuses it once it has expired."""
    try:
        shown = x509.load_der_x509_certificate(der)
    except ValueError as error:
        return DoctorLine(about, "certificate", "unknown", printable(f"cannot be read: {error}"))
    line = date_line(about, "the server's", shown, now, "Renew it at that server.")
    if line.level == "problem" and not checked:
        return DoctorLine(about, line.check, "warning", f"{line.what}; it is not checked now", line.cure)
    return line


def date_line(about: str, what: str, one: x509.Certificate, now: datetime.datetime, cure: str) -> DoctorLine:
    """Return a line about its validity, and for how long."""
    ends, begins = one.not_valid_after_utc, one.not_valid_before_utc
    level: Level = "ok"
    text = f"{what} certificate is valid until {ends:%Y-%m-%d %H:%M} UTC"
    if now > ends:
        level, text = "problem", f"{what} certificate has expired on {ends:%Y-%m-%d %H:%M} UTC"
    elif now < begins:
        level, text = "problem", f"{what} certificate is not valid before {begins:%Y-%m-%d %H:%M} UTC"
    elif ends - now < datetime.timedelta(days=_WARNING_DAYS):
        level, text = "warning", f"{text}, in {(ends - now).days} days"
    return DoctorLine(about, "certificate", level, text, "" if level == "ok" else cure)
