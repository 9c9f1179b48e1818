"""The relay's identity for its source, kept beside the archive, and the source's identity for the archive."""

import json
import socket
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from protocol.errors import ErrorCode
from relay.archive.storage.archived_file import SourceIdentity
from relay.archive.storage.files import REGISTRATION_NAME, UUID_NAME
from relay.archive.storage.small_file import write_small_file
from relay.disk.file_calls import read_file
from relay.disk.kept_json import kept_json
from relay.upstream.source.source_errors import FailureKind, UpstreamError

log = structlog.get_logger()

# A source's list of replicas cuts longer ones there.
_HOST_BYTES: Final = 60


@dataclass(frozen=True, slots=True)
class Registration:
    """The facts that the relay registers at its source besides its uuid. SHOW REPLICAS or SHOW SLAVE HOSTS shows them there."""

    server_id: int
    host: str
    port: int


def own_registration(server_id: int, port: int) -> Registration:
    """Return this machine's name, and the port that replicas use."""
    return Registration(server_id, socket.gethostname()[:_HOST_BYTES], port)


def earlier_registration(directory: Path) -> Registration | None:
    """Return the registration that the archive's relay used last; None for a new archive. Blocking; a few bytes."""
    try:
        held = kept_json(read_file(directory / REGISTRATION_NAME))
        return Registration(int(held["server_id"]), str(held["host"]), int(held["port"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        log.warning("registration_unreadable", file=str(directory / REGISTRATION_NAME), why=str(error))
        return None


def keep_registration(directory: Path, registration: Registration) -> None:
    """Save the registration. Blocking; a few bytes. Raises: OSError."""
    text = json.dumps(
        {"server_id": registration.server_id, "host": registration.host, "port": registration.port}, sort_keys=True
    )
    write_small_file(directory / REGISTRATION_NAME, text + "\n")


def own_uuid(directory: Path) -> str:
    """Return the relay's own server_uuid, generated once and kept beside the archive. Blocking; a few bytes."""
    path = directory / UUID_NAME
    try:
        return str(uuid.UUID(read_file(path).decode("ascii").strip()))
    except FileNotFoundError:
        made = str(uuid.uuid4())
    except ValueError:
        log.warning("server_uuid_unreadable", file=str(path), note="a new one is made")
        made = str(uuid.uuid4())
    write_small_file(path, made + "\n")
    return made


@dataclass(frozen=True, slots=True)
class ListedReplica:
    """A row of the source's list of replicas. `server_uuid` is None if the source's kind has none."""

    server_id: int
    host: str
    port: int
    server_uuid: str | None


def check_replicas(
    listed: list[ListedReplica], own: Registration, earlier: Registration | None, server_uuid: str
) -> None:
    """Look for another replica with our server_id or uuid among those that the source lists.

    The list may still contain this relay: a source notices late that a connection has ended. Raises: UpstreamError if attaching would
    end the other's stream.
    """
    ours = {(own.host, own.port)} | ({(earlier.host, earlier.port)} if earlier is not None else set())
    for replica in listed:
        where = f"{replica.host or 'a host that does not tell its name'}:{replica.port}"
        elsewhere = (replica.host, replica.port) not in ours
        if replica.server_uuid == server_uuid and elsewhere and replica.host:
            raise UpstreamError(
                FailureKind.AUTHENTICATION,
                f"another replica of the source, {where}, has this relay's server_uuid {server_uuid}: the archive "
                "directory was copied, or that relay still runs",
                f"Stop that relay, or remove {UUID_NAME} from the archive directory of one of the two. Tried again slowly: the "
                "source may list a connection that is gone for a while.",
                name="server_uuid_clash",
                number=ErrorCode.ER_MASTER_FATAL_ERROR_READING_BINLOG,
            )
        if replica.server_id != own.server_id or not elsewhere or replica.server_uuid == server_uuid:
            continue
        if replica.server_uuid:
            # MySQL distinguishes replicas by their uuid: both stay, but its list shows only one of them.
            log.warning(
                "server_id_shared",
                server_id=own.server_id,
                replica=where,
                server_uuid=replica.server_uuid,
                advice="Give source.server_id a number that no other replica of the source has.",
            )
            continue
        raise UpstreamError(
            FailureKind.AUTHENTICATION,
            f"another replica of the source, {where}, has our server_id {own.server_id}: attaching would end its stream",
            "Give source.server_id a number of its own. Tried again slowly: the source may list a connection that is gone "
            "for a while.",
            name="server_id_clash",
            number=ErrorCode.ER_MASTER_FATAL_ERROR_READING_BINLOG,
        )


def check_source(
    known: SourceIdentity | None, found: SourceIdentity, own_server_id: int, where: str, *, accept_change: bool
) -> bool:
    """Compare the source at `where` with the archive's. Return whether it is another server, accepted as requested.

    Raises: UpstreamError, SETUP for a server_id that is ours, IDENTITY for another server.
    """
    if found.server_id == own_server_id:
        raise UpstreamError(
            FailureKind.SETUP,
            f"source.server_id {own_server_id} is the source's own server_id",
            "Give source.server_id a number that no server of this replication has.",
            name="server_id_clash",
        )
    if known is None:
        return False
    advice = "Correct source.host, or give this source a name (and so an archive directory) of its own: source.name."
    if known.flavour != found.flavour:
        text = f"{where} is a {found.flavour} server; the archive holds binlogs of a {known.flavour} one"
        raise UpstreamError(FailureKind.IDENTITY, text, advice, name="source_identity_changed")
    if known.server_uuid and found.server_uuid:
        if known.server_uuid == found.server_uuid:
            return False
        text = f"{where} has server_uuid {found.server_uuid}; the archive is of {known.server_uuid}"
    else:
        if known.server_id == found.server_id:
            return False
        text = f"{where} has server_id {found.server_id}; the archive is of server_id {known.server_id}"
    if accept_change:
        return True
    advice += (
        " To go on with this one, if it has all that the archive has: STOP REPLICA, CHANGE REPLICATION SOURCE TO it at the "
        "relay, START REPLICA."
    )
    raise UpstreamError(FailureKind.IDENTITY, text, advice, name="source_identity_changed")
