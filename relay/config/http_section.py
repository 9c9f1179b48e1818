"""[http]: the port for monitors."""

from typing import Annotated, Final

from pydantic import AfterValidator, Field, SecretStr

from relay.config.text.passwords import password_text
from relay.config.toml_section import TomlSection
from relay.config.values import NonEmpty, PathText, Port, Seconds, checked_host_names

HTTP_PORT: Final = 9307


class HttpSection(TomlSection):
    """The HTTP port for monitors: metrics, health, and the state of the relay as JSON. It only reads."""

    enabled: bool = False
    """`true`: the relay answers HTTP at `http.host` and `http.port`. Example: `true`"""
    host: NonEmpty = "127.0.0.1"
    """The address at which it listens for HTTP. Anyone who reaches it may send requests, unless there is a token. Example:
    `"10.0.0.5"`"""
    port: Port = HTTP_PORT
    """The port at which it listens for HTTP. Example: `9307`"""
    hosts: Annotated[list[NonEmpty], AfterValidator(checked_host_names)] = []
    """The names under which the port may be addressed, besides `http.host`, `localhost` and loopback addresses: without port. A
    request with another `Host` is refused (421) if the port listens on loopback, so that no web page reads it by a name of its own
    (DNS rebinding); elsewhere only if there is a list, and addresses are let in too. It is needed with a proxy that passes its own
    name on. SIGHUP takes it over. Example: `["relay.example"]`"""
    tls_cert: PathText | None = None
    """PEM file with the certificate for HTTPS, and those between it and the authority. With `tls_key` it switches TLS on, and then
    HTTP without TLS is off. SIGHUP reads it again. Example: `"/etc/binlog-relay/http-cert.pem"`"""
    tls_key: PathText | None = None
    """PEM file with the key of `tls_cert`. SIGHUP reads it again. Example: `"/etc/binlog-relay/http-key.pem"`"""
    token: SecretStr | None = None
    """The token that a request must show (`Authorization: Bearer …`), in clear. Write at most one of `token`, `token_file`,
    `token_env` and `token_credential`; without any, no request needs one. `/healthz` and `/readyz` never need it. Example:
    `"8NJ0qXrTzC4uPmE2"`"""
    token_file: PathText | None = None
    """A file that contains the token and nothing else. A newline at its end is not part of it. SIGHUP reads it again. Example:
    `"/etc/binlog-relay/http.token"`"""
    token_env: NonEmpty | None = None
    """The name of an environment variable that holds the token. Example: `"RELAY_HTTP_TOKEN"`"""
    token_credential: NonEmpty | None = None
    """The name of a credential of the service that holds the token: `LoadCredential=` in the unit of systemd. systemd hands it over at
    the start, so another token needs a restart. Example: `"http.token"`"""
    ready_behind_s: Seconds = 300.0
    """`/readyz` reports that the relay is not ready while its lag behind the source is larger. Example: `300`"""
    request_timeout_s: Annotated[float, Field(ge=0.1, le=600, allow_inf_nan=False)] = 10.0
    """A connection is closed whose request is not complete after so long, or that does not take its answer. Example: `10`"""
    max_connections: Annotated[int, Field(ge=1, le=10_000)] = 256
    """Most HTTP connections at the same time. When one more comes, the address (of IPv6 the /64 network) that has most loses one:
    one that waits for its next request, else the one whose request has been incomplete for longest. Example: `256`"""

    def token_text(self) -> str | None:
        """Return the token in clear, read from its file, variable or credential now; None: there is none.

        Raises: OSError for a file or credential that cannot be read, KeyError for a variable that is not set, UnicodeDecodeError.
        """
        return password_text(self.token, self.token_file, self.token_env, self.token_credential)
