"""The holds on files: connections and views as they are now, and replicas that are away."""

from collections.abc import Iterable, Iterator, Sequence

from protocol.position import binlog_number
from relay.admin.purge_statements import ViewReader, view_reader
from relay.archive.archive import Archive
from relay.downstream.connection.client_status import ClientStatus
from relay.retention.decision import HeldFile, Hold, HolderKind, Place
from relay.retention.known_replicas import KnownReplica, needed_place, order_of
from relay.retention.retention_limits import RetentionLimits
from relay.view.shown_view import ShownView
from relay.view.unopened_view import UnopenedView

_ALL: Place = (0, 0)


def reader_holds(archive: Archive, connections: Iterable[ClientStatus]) -> Iterator[Hold]:
    """Yield what connections read, or are about to. connections: those that are served this archive."""
    for client in connections:
        needed = client.needed_file
        if needed is None:
            continue
        place = _ALL if not needed else _place_of(archive, needed, client.needed_generation)
        if place is not None:
            who = f"connection {client.connection_id} of '{client.user}'@'{client.address}' (server_id {client.server_id}) reads it"
            yield Hold(HolderKind.READER, who, place)


def view_holds(archive: Archive, views: Iterable[ShownView], *, also_stopped: bool) -> Iterator[Hold]:
    """Yield what the views must still be built from. archive: the mirror."""
    for view in views:
        is_untried = isinstance(view, UnopenedView) and not view.was_tried
        stop = view.status.stop
        if stop is not None and not also_stopped and not is_untried:
            continue
        reader = view_reader(view)
        stands = f", and stands stopped ({stop.reason.name})" if stop is not None and not is_untried else ""
        yield Hold(HolderKind.VIEW, view_text(reader.name, stands), _view_place(archive, reader))


def view_text(name: str, stands: str = "") -> str:
    """Return the text for people."""
    return f"view {name} has not been made of it yet{stands}"


def replica_holds(
    name: str, files: Sequence[HeldFile], replicas: Iterable[KnownReplica], limits: RetentionLimits
) -> Iterator[Hold]:
    """Yield what known replicas of the archive `name` have not received yet; those that are away too long keep nothing."""
    order = order_of(files)
    for replica in replicas:
        if replica.view != name or not keeps_files(replica, limits):
            continue
        place = needed_place(replica, files, order)
        if place is not None:
            yield Hold(HolderKind.REPLICA, f"{replica.named} needs it", place)


def keeps_files(replica: KnownReplica, limits: RetentionLimits) -> bool:
    """Return whether what it needs is kept, connected or not."""
    if replica.connected:
        return True
    return limits.section.keep_for_replicas and replica.absent_s < limits.forget_replicas_after_s


def _view_place(archive: Archive, reader: ViewReader) -> Place:
    if not reader.needed_file:
        return _ALL
    number = reader.needed_generation
    if number is None:
        number = _generation_of(archive, reader.needed_file) or 0
    return number, binlog_number(reader.needed_file)


def _place_of(archive: Archive, name: str, generation: int | None) -> Place | None:
    """Return the place of a file; None: there is no such file, so nothing is kept for it."""
    named = archive.named(name)
    if named is not None:
        generation, name = named[0].number, named[1]
    number = generation if generation is not None else _generation_of(archive, name)
    return None if number is None else (number, binlog_number(name))


def _generation_of(archive: Archive, name: str) -> int | None:
    return next((one.number for one in archive.all if one.file(name) is not None), None)
