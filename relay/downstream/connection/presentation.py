"""The identity that the relay shows to replicas, and the replicas whose ids collide with others."""

import socket
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Literal

from protocol.handshake import plain_version
from protocol.statements import SourceFacts
from relay.archive.generation import Generation
from relay.downstream.request.refusal import refusal

NEUTRAL_VERSION: Final = "5.7.44-binlog-relay"
"""The version in the greeting before the source was reached for the first time, if relay.toml names no version."""

PresentAs = Literal["source", "relay"]


def source_facts(generation: Generation) -> SourceFacts | None:
    """Return the facts of the source itself; None while nothing is known of it.

    The newest file says whether there are checksums; without an identity (binlogs of a source that no longer exists) it also says who
    wrote it.
    """
    newest = generation.files[-1] if generation.files else None
    checksum: Literal["CRC32", "NONE"] = "CRC32" if newest is not None and newest.checksum else "NONE"
    identity = generation.identity
    if identity is not None:
        flavour: Literal["mysql", "mariadb"] = "mariadb" if identity.flavour == "mariadb" else "mysql"
        version = plain_version(identity.version)
        return SourceFacts(flavour, version, identity.server_id, identity.server_uuid, checksum)
    if newest is None:
        return None
    flavour = "mariadb" if newest.flavour == "mariadb" else "mysql"
    return SourceFacts(flavour, plain_version(newest.server_version), newest.server_id, None, checksum)


def located(facts: SourceFacts, generation: Generation, port: int) -> SourceFacts:
    """Return the facts with the relay's host, port and data directory, which monitors read as @@hostname, @@port and @@datadir."""
    facts = replace(facts, hostname=socket.gethostname(), port=port)
    newest = generation.files[-1] if generation.files else None
    if newest is None:
        return facts
    directory = str(generation.path(newest.name).parent)
    return replace(facts, data_directory=directory, binlog_base_name=newest.name.rpartition(".")[0])


@dataclass(frozen=True, slots=True)
class Presentation:
    """The facts that replicas are shown. `server_id`, `server_uuid`: the relay's own; None: it has none.

    `present_as`: whose ids are shown. `version`: instead of the source's. `semi_sync`: acknowledgements are requested.
    """

    present_as: PresentAs = "source"
    version: str | None = None
    server_id: int | None = None
    server_uuid: str | None = None
    semi_sync: bool = False

    def facts(self, source: SourceFacts) -> SourceFacts:
        """Return the source's facts as replicas are shown them."""
        shown = replace(source, semi_sync=self.semi_sync)
        if self.version is not None:
            shown = replace(shown, version=plain_version(self.version))
        if self.present_as == "relay" and self.server_id is not None:
            shown = replace(shown, server_id=self.server_id, server_uuid=self.server_uuid)
        return shown

    def facts_before_source(self, unreached: Callable[[], str]) -> SourceFacts:
        """Return the facts for people and monitors while nothing is known of the source. unreached: the reason, as one sentence."""
        version = plain_version(self.version or NEUTRAL_VERSION)
        flavour: Literal["mysql", "mariadb"] = "mariadb" if "mariadb" in version.lower() else "mysql"
        return SourceFacts(flavour, version, 0, unreached=unreached)

    def check_replica(self, source: SourceFacts, server_id: int, server_uuid: str) -> None:
        """Refuse a replica that has the ids of the source, or of the relay. Raises: PositionRefused (1236).

        A replica leaves out events that carry its own server_id: under a source with the same one it would silently leave out all of
        them. It compares the id of the server that it is connected to, which may be the relay's.
        """
        advice = "Give each server a server_id of its own"
        if server_id == source.server_id:
            raise refusal(
                f"This replica has server_id {server_id}, and so has the source behind binlog-relay: the replica would leave "
                f"out the source's events as its own. {advice}"
            )
        if server_id == self.server_id:
            raise refusal(f"This replica has server_id {server_id}, and so has binlog-relay itself. {advice}")
        owner = {source.server_uuid: "the source behind binlog-relay", self.server_uuid: "binlog-relay itself"}
        if server_uuid and server_uuid in owner:
            raise refusal(
                f"This replica has server_uuid {server_uuid}, and so has {owner[server_uuid]}. "
                "A copied data directory? Delete auto.cnf there and restart the replica"
            )
