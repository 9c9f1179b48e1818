"""The check whether the relay can listen at the addresses of relay.toml, or does already. Blocking."""

import errno
import socket
from collections.abc import Iterator
from typing import Final

from relay.config import Config
from relay.config.text.http_access import is_loopback
from relay.doctor.doctor_line import DoctorLine
from relay.doctor.process_sockets import process_sockets

_PORT: Final = "port"


def port_line(section: str, host: str, port: int, pid: int | None) -> DoctorLine:
    """Return a line about a port. section: listen or http. pid: of the relay that runs; None: none does."""
    where = f"{section} {host}:{port}"
    sockets = process_sockets(pid) if pid is not None else None
    try:
        family, kind, number, _name, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, number) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen(1)
    except OSError as error:
        stop = (
            f"Another process has it ('ss -ltnp sport = :{port}' names it): stop it, or choose another {section}.port."
        )
        if error.errno == errno.EADDRINUSE and pid is not None:
            if sockets is None or port in sockets.listening:
                return DoctorLine(where, _PORT, "ok", "in use while the relay runs, as it should be")
            return DoctorLine(where, _PORT, "problem", "in use, and not by the relay that runs", stop)
        cure = {
            errno.EADDRINUSE: stop,
            errno.EACCES: f"Ports below 1024 need a privilege: choose another {section}.port.",
            errno.EADDRNOTAVAIL: f"{section}.host must be an address of this machine, such as 0.0.0.0 or ::.",
        }.get(error.errno or 0, f"{section}.host must be an address or a name of this machine.")
        return DoctorLine(where, _PORT, "problem", f"cannot be listened on: {error.strerror}", cure)
    if pid is not None:
        text = "nobody listens there, though the relay runs: it is starting, or was started with another port"
        return DoctorLine(
            where, _PORT, "warning", text, "Look at the relay's log; restart it where relay.toml was changed."
        )
    return DoctorLine(where, _PORT, "ok", "free")


def http_lines(config: Config, pid: int | None) -> Iterator[DoctorLine]:
    """Yield the lines about the port of monitors: whether it is available, and who may read its answers."""
    section = config.http
    where = f"http {section.host}:{section.port}"
    if not section.enabled:
        yield DoctorLine(where, "http", "ok", "off: no metrics, no health, no page")
        return
    yield port_line("http", section.host, section.port, pid)
    has_token, has_tls = (
        any((section.token, section.token_file, section.token_env, section.token_credential)),
        section.tls_cert is not None,
    )
    if is_loopback(section.host):
        yield DoctorLine(
            where, "access", "ok", f"from this machine only, {'by token' if has_token else 'without a token'}"
        )
    elif not has_token:
        text = "whoever reaches it reads names of accounts, addresses and files: there is no token"
        cure = "Give http.token_file (openssl rand -hex 32), or listen at 127.0.0.1."
        yield DoctorLine(where, "access", "warning", text, cure)
    elif not has_tls:
        cure = "Give http.tls_cert and http.tls_key, or listen at 127.0.0.1."
        yield DoctorLine(where, "access", "warning", "the token crosses the network in clear: there is no TLS", cure)
    else:
        yield DoctorLine(where, "access", "ok", "by token, over TLS")
