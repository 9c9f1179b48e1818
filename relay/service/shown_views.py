"""The archive and its views as one listener shows them: to replicas, and to people."""

from dataclasses import replace

from relay.admin.console import Console
from relay.archive.archive import Archive
from relay.archive_inspection.scrub import Scrub
from relay.downstream.clients import Clients
from relay.downstream.listen_options import ListenOptions
from relay.downstream.request.source_state import SourceState, nobody_to_ask
from relay.downstream.served_archive import ServedArchive, ViewOrigin
from relay.service.shown_gtids import ShownGtids, ShownViewGtids, source_holdings
from relay.service.view_service import OpenView
from relay.upstream.control import SourceControl
from relay.view.rules.settings import MARIADB
from relay.view.unopened_view import UnopenedView


class ShownViews:
    """The implementation of `ViewHost`. mirror: the archive that views are built from; console: its own."""

    def __init__(
        self,
        mirror: Archive,
        control: SourceControl,
        clients: Clients,
        options: ListenOptions,
        scrub: Scrub,
        console: Console,
    ) -> None:
        self._mirror = mirror
        self._control = control
        self._clients = clients
        self._options = options
        self._scrub = scrub
        self._console = console

    def serve(self, view: OpenView) -> ServedArchive:
        """Return how an open view is served."""
        uuid = str(view.settings.uuid) if view.settings.gtids == "assign" else None
        settings = view.settings
        origin = ViewOrigin(self._mirror, uuid, settings.mysql_version, gives_all=settings.flavour == MARIADB)
        state, console = view_state(view, self._mirror, self._control), self._shown(view, view.archive)
        return ServedArchive(view.archive, self._clients, self._options, state, console, origin)

    def answer_for(self, view: UnopenedView) -> Console:
        """Return what answers statements of accounts with a view that is not open."""
        return self._shown(view, self._mirror)

    def _shown(self, view: OpenView | UnopenedView, archive: Archive) -> Console:
        console = self._console
        console.add_view(view)
        path = console.config_path
        return Console(archive, self._control, self._clients, self._scrub, config_path=path, view=view, mirror=console)


def source_state(archive: Archive, control: SourceControl) -> SourceState:
    """Return the downstream side's questions about the source."""
    return SourceState(
        gtid_variables=ShownGtids(archive, lambda: control.gtids, is_reading_on=lambda: control.is_reading_on),
        settings=lambda: control.settings,
        trouble=lambda: control.trouble,
        gtid_mode=lambda: control.gtids.mode if control.gtids is not None else None,
        ask_gtids=lambda: source_holdings(control),
        lacks_file=control.lacks_file,
    )


def view_state(view: OpenView, mirror: Archive, control: SourceControl) -> SourceState:
    """Return the same for the clients of a view. The source knows nothing of the GTIDs that it assigns."""
    policy = view.settings.gtids
    gtids = ShownViewGtids(
        view.archive,
        lambda: control.gtids,
        policy,
        mirror=mirror,
        is_reading_on=lambda: control.is_reading_on,
    )
    state = replace(source_state(view.archive, control), gtid_variables=gtids)
    return state if policy == "keep" else replace(state, gtid_mode=lambda: gtids().mode, ask_gtids=nobody_to_ask)
