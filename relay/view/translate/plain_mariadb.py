"""The plain groups of a MariaDB source, which the kernel copies, and the GTIDs and tables that it must know for that."""

from collections.abc import Callable
from typing import Final

from protocol.kernel import codes
from protocol.views.mariadb_copy import MariadbCopy
from protocol.views.view_copy import ViewCopy
from relay.view.rules.mariadb.mariadb_rules import MariadbRules
from relay.view.translate.made_bytes import MadeBytes
from relay.view.translate.source_window import SourceWindow

_TABLE_ID_BYTES: Final = 6
_MARK: Final = -1


class PlainMariadb:
    """Copies plain groups of one file. `kernel` has the position and numbers of the view's file.

    `mark` makes a mark before the next group, and returns the source's offset from which on another is due.
    """

    def __init__(
        self,
        kernel: ViewCopy,
        source: SourceWindow,
        made: MadeBytes,
        rules: MariadbRules,
        server_version: int,
        mark: Callable[[], int],
    ) -> None:
        self._kernel = kernel
        self._source = source
        self._made = made
        self._rules = rules
        self._mark = mark
        self._copy = MariadbCopy(int(source.trailer > 0), int(made.trailer > 0), server_version)
        self._domains: list[int] = []
        self._changes: object = None

    def copy(self, stop: int) -> int:
        """Copy the next groups in the window, up to `stop`, as far as there is room. VIEW_MORE and VIEW_ROOM are as for
        `ViewCopy.copy`; VIEW_LOOK: the next thing, whatever it is, is not a plain group."""
        source, made, copy = self._source, self._made, self._copy
        while True:
            self._begin()
            copy.source_base = source.offset - source.lo
            status = copy.copy(source.buffer, source.lo, stop, made.out, made.at)
            source.advance(copy.consumed)
            made.at = copy.produced
            self._end()
            if status != codes.VIEW_PLAN:
                return status
            if copy.wanted == _MARK:
                copy.mark_at = self._mark()
            elif not self._add_map(bytes(source.buffer[copy.wanted : copy.wanted_stop])):
                return codes.VIEW_LOOK

    def _begin(self) -> None:
        """Pass the rules' state, and the position in the view's file, to the copier."""
        copy, given = self._copy, self._rules.given
        copy.position, copy.sequence = self._kernel.position, self._kernel.sequence
        copy.commit_id, copy.back = given.commit_id, given.back
        copy.forget_domains()
        self._domains = []
        for domain, following in given.next_numbers():
            if not copy.add_domain(domain, given.uuid(domain).bytes, following):
                break
            self._domains.append(domain)
        changes = self._rules.changes
        if changes is not self._changes:
            self._changes = changes
            copy.forget_maps()

    def _end(self) -> None:
        """Pass the copier's numbers back to the rules."""
        copy, given = self._copy, self._rules.given
        self._kernel.position, self._kernel.sequence = copy.position, copy.sequence
        given.commit_id, given.back = copy.commit_id, copy.back
        for index, domain in enumerate(self._domains):
            given.go_on(domain, copy.following_of(index))

    def _add_map(self, body: bytes) -> bool:
        """Pass the translation of a Table_map to the copier. Return False if that is not possible."""
        made = self._rules.plain_map(body)
        return self._copy.add_map(body[_TABLE_ID_BYTES:], None if made is None else made[_TABLE_ID_BYTES:])
