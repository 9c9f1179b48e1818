"""Checks that the dumped server is the source whose binlogs are archived: a replica's position is one of its own binlogs."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from relay.view.seeding.dump_head import DumpPlace, shown

_EVERY_HOST: Final = ("", "localhost", "::1")
_LOOPBACK: Final = "127."


class ArchivedServer(NamedTuple):
    """The server that wrote the archived file that a dump names. `server_id` and `server_version` are from that file; `server_uuid` is
    the source's last report; empty: it has none. `hosts` are those that the relay is configured to follow; none: a directory."""

    server_id: int
    server_version: str
    server_uuid: str
    hosts: Sequence[str]


def is_another_server(taken: DumpPlace, archived: ArchivedServer) -> bool:
    """Return whether the dump itself says that it is not of the source."""
    if archived.server_uuid and taken.server_uuid:
        # A source gets another uuid when its auto.cnf is lost; no replica has the server_id of its source.
        return taken.server_uuid != archived.server_uuid and taken.server_id != archived.server_id
    return bool(taken.server_id) and taken.server_id != archived.server_id


def server_doubts(taken: DumpPlace, archived: ArchivedServer, *, begins_file: bool) -> list[str]:
    """Return why the dump may be of a replica all the same, a sentence each; none: it is proven. `begins_file`: no transaction of the
    file precedes the position.
    """
    if taken.server_id == archived.server_id or (taken.server_uuid and taken.server_uuid == archived.server_uuid):
        return []
    doubts = []
    if taken.server_version and taken.server_version != archived.server_version:
        doubts.append(
            f"the dump is of a server {shown(taken.server_version)}, the archived {taken.position.file} of one "
            f"{archived.server_version}: was it taken at the source?"
        )
    if not _is_followed(taken.host, archived.hosts):
        doubts.append(_unknown_host(taken, archived))
    if begins_file:
        doubts.append(
            f"no transaction of its file is before {taken.position}: a file of that name begins so at any server. Make sure that "
            "the dump was taken at the source."
        )
    return doubts


def _is_followed(host: str, hosts: Sequence[str]) -> bool:
    """Return whether the host is the followed one. Where several may be followed, it may be one that was a replica at that time."""
    return len(hosts) == 1 and not _says_nothing(host) and host.casefold() == hosts[0].casefold()


def _says_nothing(host: str) -> bool:
    return host.casefold() in _EVERY_HOST or host.startswith(_LOOPBACK)


def _unknown_host(taken: DumpPlace, archived: ArchivedServer) -> str:
    if _says_nothing(taken.host):
        told = (
            f"the dump says {shown(taken.host)} of its host"
            if taken.host
            else "the dump does not say of which server it is"
        )
    else:
        followed = f", the relay is to follow {' or '.join(archived.hosts)}" if archived.hosts else ""
        told = f"the dump is of host {shown(taken.host)}{followed}"
    return (
        f"{told}. At a replica {taken.position} is a place in its own binlogs, and transactions are lost or come twice without a "
        f"word. SELECT @@server_id at the dumped server must say {archived.server_id}."
    )
