"""The identity check of a server that the relay logs in to: the same keys in every section that names one."""

from typing import Literal

from relay.config.toml_section import TomlSection
from relay.config.values import PathText

SslMode = Literal["disabled", "preferred", "required", "verify_ca", "verify_identity"]


class ServerSecurity(TomlSection):
    """TLS to a server, and the conditions for sending it the password."""

    ssl_mode: SslMode = "preferred"
    """TLS to the server. `"disabled"`: never. `"preferred"`: if the server offers it. `"required"`: always, any certificate.
    `"verify_ca"`: the certificate must be in `ssl_ca`, or be signed by one of those there. `"verify_identity"`: it must also name
    `host`. Only the last two stop an attacker in the middle; with the others the password itself is not sent (see
    [SOURCE.md](SOURCE.md#the-password)). Example: `"verify_ca"`"""
    ssl_ca: PathText | None = None
    """PEM file of the authority that signed the certificate of the server, or that certificate itself, for `"verify_ca"`
    and `"verify_identity"`. MySQL keeps its own as `ca.pem` in its data directory. `"verify_identity"` takes the authorities of
    the system where this is left out. Example: `"/etc/binlog-relay/source-ca.pem"`"""
    ssl_cert: PathText | None = None
    """PEM file with the certificate of the relay, if the server asks for one. It needs `ssl_key`. Example:
    `"/etc/binlog-relay/client-cert.pem"`"""
    ssl_key: PathText | None = None
    """PEM file with the key of `ssl_cert`. Example: `"/etc/binlog-relay/client-key.pem"`"""
    public_key: PathText | None = None
    """PEM file with the RSA public key of the server, for accounts with caching_sha2_password or sha256_password on a
    connection without TLS (`ssl_mode = "disabled"`): the password is encrypted with it. MySQL keeps it as `public_key.pem` in
    its data directory. Example: `"/etc/binlog-relay/source-public-key.pem"`"""
