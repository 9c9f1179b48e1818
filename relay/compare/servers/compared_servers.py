"""Both servers of a comparison, checked: the relay's source, and a replica that follows it by the relay."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from relay.archive.catalog.catalog import Catalog, CatalogUnreadable
from relay.archive.catalog.generation_directories import begun_generations
from relay.archive.storage.files import CATALOG_NAME
from relay.commands.view_command import configured_view
from relay.compare.servers.common_place import (
    CommonPlace,
    Reached,
    check_applies,
    reached_by_gtids,
    reached_by_places,
    reached_by_view_places,
)
from relay.compare.servers.compare_stop import CompareStop
from relay.compare.servers.compared_server import ComparedServer
from relay.config import Config, ServerSource
from relay.view.inspect.named_view import NamedView

SOURCE: Final = "the source"
TARGET: Final = "the new server"


@dataclass(frozen=True, slots=True)
class BothServers:
    """The sessions: `reader` is a second one at the source, for the thread that reads ahead."""

    source: ComparedServer
    reader: ComparedServer
    target: ComparedServer
    place: CommonPlace
    any_engine: bool

    @property
    def identities(self) -> list[str]:
        """What tells these servers from others."""
        return [f"source {self.source.identity()}", f"new server {self.target.identity()}"]


@contextmanager
def both_servers(
    config: Config, source: ServerSource | None, target: ServerSource, view: str | None, wait_s: float
) -> Iterator[BothServers]:
    """Yield both, logged in and checked. `source` and `view` are what the command line names. Raises: CompareStop; CommandFailed."""
    settings = source or (config.sources[0] if config.sources else None)
    if settings is None:
        raise CompareStop(
            "The relay follows a directory, not a server",
            "Name the server that wrote these binlogs: --source HOST:PORT,USER,FILE.",
        )
    option = "[source] of relay.toml" if source is None else "--source"
    with ExitStack() as opened:
        one = opened.enter_context(ComparedServer(settings, option, SOURCE))
        other = opened.enter_context(ComparedServer(target, "--replica", TARGET))
        if one.identity() == other.identity():
            raise CompareStop(
                f"{one.where} and {other.where} are the same server", "Name the new server with --replica."
            )
        one.check_privileges()
        other.check_privileges()
        _check_is_source(config, one)
        one.end()
        status = check_applies(other)
        followed = _followed_view(config, status, one, other, view)
        named = None if followed is None else configured_view(config, followed)
        place = CommonPlace(other, _reached(config, other, named), wait_s)
        engines = named is not None and named.settings.engines == "innodb"
        yield BothServers(one, opened.enter_context(one.again()), other, place, engines)


def _check_is_source(config: Config, source: ComparedServer) -> None:
    """Raise CompareStop if the archive's newest binlogs are of another server."""
    archive = config.archive_directory
    try:
        catalog = Catalog.open_read_only(begun_generations(archive)[-1][1] / CATALOG_NAME)
    except (CatalogUnreadable, OSError, IndexError):
        raise CompareStop(
            f"There is no readable archive in {archive}",
            "Run this where the relay runs, as its user, with its relay.toml.",
        ) from None
    try:
        identity, files = catalog.identity(), catalog.files()
    finally:
        catalog.close()
    known = identity.server_id if identity is not None else files[-1].server_id if files else None
    if known is not None and known != source.server_id():
        raise CompareStop(
            f"{source.where} has server_id {source.server_id()}, and the relay follows server_id {known}: it is another server",
            f"Name the server that the relay follows, in {source.option}.",
        )


def _followed_view(
    config: Config, status: dict[str, Any], source: ComparedServer, target: ComparedServer, view: str | None
) -> str | None:
    """Return the view that the replica follows; None: the source's own binlogs. Raises: CompareStop."""
    if view is not None:
        return view
    host, port, user = (status.get(f"Master_{name}") for name in ("Host", "Port", "User"))
    if str(port) == str(config.listen.port):
        return next((account.view for account in config.accounts if account.user == user), None)
    if (str(host), str(port)) == (source.settings.host, str(source.settings.port)):
        return None
    raise CompareStop(
        f"{target.where} follows {host}:{port}, which is neither this relay's port {config.listen.port} nor the source",
        "Name a replica of this relay; of one behind another replica, name the view whose GTIDs it has: --view NAME.",
    )


def _reached(config: Config, target: ComparedServer, view: NamedView | None) -> Reached:
    if view is None:
        return reached_by_places(target)
    how = reached_by_view_places if view.settings.gtids == "anonymous" else reached_by_gtids
    return how(target, view, lambda: _newest_generation(config.archive_directory))


def _newest_generation(archive: Path) -> int:
    return begun_generations(archive)[-1][0]
