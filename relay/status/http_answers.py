"""The answers of a running relay at its HTTP port: lag in seconds, which its SQL port does not show for replicas."""

import http.client
import json
import ssl
from dataclasses import dataclass, field
from typing import Any, Final

from relay.config import Config

_LIMIT_S: Final = 3.0
_ANY: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}
_LARGEST: Final = 16 << 20
_MOST_REPLICAS: Final = 1000


@dataclass(frozen=True, slots=True)
class HttpAnswers:
    """overview: as /api/v1/overview has it; None: not asked, and `why` if it was tried. replicas: of /api/v1/replicas, connected."""

    overview: dict[str, Any] | None = None
    replicas: list[dict[str, Any]] = field(default_factory=list)
    applied_elsewhere: list[dict[str, Any]] = field(default_factory=list)
    why: str | None = None


def ask_http(config: Config, listens: bool | None) -> HttpAnswers:
    """Ask a relay. Blocking, in bounded time. It never raises for a relay that does not answer.

    listens: whether the relay's process does, at this port; None: unknown. The token goes to no other process.
    """
    section = config.http
    if not section.enabled:
        return HttpAnswers()
    if listens is False:
        return HttpAnswers(why=f"the relay does not listen at port {section.port} (yet, or relay.toml was changed)")
    try:
        token = section.token_text()
        if token is not None and listens is None and section.tls_cert is None:
            text = f"not asked by HTTP: nothing proves that who listens at port {section.port} is the relay, which would get the token"
            return HttpAnswers(why=f"{text}. Run it as the relay's user or root, or write http.tls_cert")
        connection = _connection(config)
        try:
            overview = _asked(connection, "overview", token)
            replicas = _asked(connection, f"replicas?limit={_MOST_REPLICAS}", token)
        finally:
            connection.close()
        connected = [one for one in replicas["items"] if one["state"] != "gone"]
        # Of those that have left, too: they are asked all the same.
        gone = [one["applied"] for one in replicas["items"] if one["state"] == "gone" and one.get("applied")]
        return HttpAnswers(overview, connected, [*gone, *replicas.get("applied_elsewhere", ())])
    except (OSError, KeyError, ValueError, TypeError, http.client.HTTPException) as error:
        text = f"{section.host}:{section.port} does not answer by HTTP: {str(error) or type(error).__name__}"
        return HttpAnswers(why=text)


def _connection(config: Config) -> http.client.HTTPConnection:
    section = config.http
    host = _ANY.get(section.host, section.host)
    if section.tls_cert is None:
        return http.client.HTTPConnection(host, section.port, timeout=_LIMIT_S)
    # A server with the certificate of relay.toml is the relay, whatever names are in it.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(cafile=str(section.tls_cert))
    return http.client.HTTPSConnection(host, section.port, timeout=_LIMIT_S, context=context)


def _asked(connection: http.client.HTTPConnection, path: str, token: str | None) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
    connection.request("GET", f"/api/v1/{path}", headers=headers)
    answer = connection.getresponse()
    body = answer.read(_LARGEST)
    if answer.status != 200:
        raise ValueError(f"{answer.status} {answer.reason}")
    found = json.loads(body)
    if not isinstance(found, dict):
        raise TypeError("no object")
    return found
