"""The proof of identity of a server of deploy.servers: MySQL 9.7 has caching_sha2_password only, and keeps its proof as files."""

from pathlib import Path
from typing import Any


def proof_of(source: object, section: dict[str, Any]) -> dict[str, str]:
    """Return the keys of [source] that prove it: its authority, or with ssl_mode = "disabled" its public key.

    `section` is the test's own; the result is empty if that already proves the source, or asks for TLS unchecked.
    """
    data: Path | None = getattr(source, "datadir", None)
    authority = data / "ca.pem" if data is not None else None
    if data is None or authority is None or not authority.exists():
        return {}
    if "ssl_mode" not in section:
        return {"ssl_mode": "verify_ca", "ssl_ca": str(authority)}
    if section["ssl_mode"] == "disabled" and "public_key" not in section:
        return {"public_key": str(data / "public_key.pem")}
    return {}


def feed_proof_of(source: object) -> dict[str, Any]:
    """Return the same for a `FeedSource`."""
    return {key: Path(value) if key == "ssl_ca" else value for key, value in proof_of(source, {}).items()}
