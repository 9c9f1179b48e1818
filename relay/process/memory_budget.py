"""One account of the memory that peers make this process hold: unfinished packets, unread answers, GTID sets, prepared statements.

Each holder of memory for a peer (a connection) reports its size. While the sum is over the limit, holders are ended: the largest one
of the address that has most, of the account that has most. So a small holder is never ended for the memory of another.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

DEFAULT_MEMORY_BYTES: Final = 512 << 20
HolderOwner = tuple[str, str]
"""The owner of held memory: an account (or what stands for one), and the address or network that it came from (`address_group`)."""

_LEFT_OF_LIMIT: Final = 7 / 8
"""Holders are ended until this share of the limit is left, so that the next look at all of them is some time away."""
_GROWTH_BETWEEN_LOOKS: Final = 1 / 64
_MUCH_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class MemoryFacts:
    """limit_bytes: as configured. used_bytes: now; most_used_bytes: at one time. holders: how many hold anything. ended: how many
    were ended so far."""

    limit_bytes: int
    used_bytes: int
    most_used_bytes: int
    holders: int
    ended: int


class MemoryHolder:
    """The memory that is held for one peer. `close` it when nothing is held any more. `MemoryBudget.open` creates it.

    let_go: called once, when it must release its memory.
    """

    __slots__ = ("_budget", "_let_go", "_measure", "held_bytes", "is_ended", "owner")

    def __init__(
        self, budget: "MemoryBudget", owner: HolderOwner, measure: Callable[[], int], let_go: Callable[[], None]
    ) -> None:
        self.owner = owner
        self.held_bytes = 0
        """The size that it reported last."""
        self.is_ended = False
        """True if it was asked to release its memory."""
        self._budget = budget
        self._measure = measure
        self._let_go = let_go

    def holds(self, size_bytes: int) -> None:
        """Set what it holds from now on, in total."""
        growth = size_bytes - self.held_bytes
        if growth:
            self.held_bytes = size_bytes
            self._budget.changed(growth, is_ended=self.is_ended)

    def close(self) -> None:
        """Release everything: it holds nothing, and will not."""
        self.holds(0)
        self._budget.forget(self)
        # The owner of the callbacks would wait for the garbage collector.
        self._measure, self._let_go = _nothing, _nobody

    def measure(self) -> int:
        """Return what it holds now: unread answers shrink without a report."""
        return self._measure()

    def end(self) -> None:
        """Ask it to release its memory."""
        self.is_ended = True
        self._let_go()


class MemoryBudget:
    """`limit_bytes` for all holders together. On the event loop only.

    call_soon: calls a function a little later, when the code that reports a larger size is done with that. on_freed: called with the
    size that a holder released.
    """

    def __init__(
        self,
        limit_bytes: int,
        call_soon: Callable[[Callable[[], None]], object],
        on_freed: Callable[[int], object] = lambda _size: None,
    ) -> None:
        self.limit_bytes = limit_bytes
        self._call_soon = call_soon
        self._on_freed = on_freed
        self._used_bytes = 0
        self._leaving_bytes = 0
        """The part of it that is held by those that were asked to release their memory."""
        self._most_used_bytes = 0
        self._ended = 0
        self._look_at = limit_bytes
        """All holders are examined once more than this is held."""
        self._look_is_due = False
        self._holders: set[MemoryHolder] = set()

    @property
    def is_tight(self) -> bool:
        """True if so much is held that no more than needed should be read at once."""
        return self._used_bytes > self.limit_bytes * _LEFT_OF_LIMIT

    def open(self, owner: HolderOwner, measure: Callable[[], int], let_go: Callable[[], None]) -> MemoryHolder:
        """Add a holder. measure: what it holds now, called before any holder is ended. let_go: as in `MemoryHolder`."""
        holder = MemoryHolder(self, owner, measure, let_go)
        self._holders.add(holder)
        return holder

    def facts(self) -> MemoryFacts:
        """Return the present state."""
        holders = sum(one.held_bytes > 0 for one in self._holders)
        return MemoryFacts(self.limit_bytes, self._used_bytes, self._most_used_bytes, holders, self._ended)

    # --- for holders ------------------------------------------------------------------------------------------------

    def changed(self, growth: int, *, is_ended: bool) -> None:
        """Note that a holder holds so much more, or less; is_ended: it was asked to release it."""
        self._used_bytes += growth
        self._leaving_bytes += growth * is_ended
        if self._used_bytes > self._most_used_bytes:
            self._most_used_bytes = self._used_bytes
        if growth < -_MUCH_BYTES:
            self._on_freed(-growth)
        elif growth > 0 and self._staying_bytes > self._look_at and not self._look_is_due:
            self._look_is_due = True
            self._call_soon(self._look)

    def forget(self, holder: MemoryHolder) -> None:
        """Forget a holder, which is closed."""
        self._holders.discard(holder)

    # --- over the limit ---------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """End the holders that must release their memory, if what is held now is over the limit."""
        try:
            for holder in self._holders:
                holder.holds(holder.measure())
            if self._staying_bytes > self.limit_bytes:
                for holder in self._losers(self._staying_bytes - int(self.limit_bytes * _LEFT_OF_LIMIT)):
                    self._ended += 1
                    self._leaving_bytes += holder.held_bytes
                    holder.end()
        finally:
            self._look_is_due = False
            # At the limit the holders are not examined with each step.
            self._look_at = max(self.limit_bytes, self._staying_bytes + int(self.limit_bytes * _GROWTH_BETWEEN_LOOKS))

    @property
    def _staying_bytes(self) -> int:
        return self._used_bytes - self._leaving_bytes

    def _losers(self, size_bytes: int) -> list[MemoryHolder]:
        """Return the holders that together hold so much, in the order in which they end: each is the largest of the address with most
        of the account with most."""
        accounts: dict[str, _Account] = {}
        for holder in self._holders:
            if holder.held_bytes and not holder.is_ended:
                account, address = holder.owner
                accounts.setdefault(account, _Account()).add(address, holder)
        for one in accounts.values():
            one.sort()
        losers: list[MemoryHolder] = []
        while size_bytes > 0:
            loser = max(accounts.values(), key=lambda one: one.held_bytes).pop_largest()
            losers.append(loser)
            size_bytes -= loser.held_bytes
        return losers


class _Account:
    """The holders of one account, by address."""

    def __init__(self) -> None:
        self.held_bytes = 0
        self._by_address: dict[str, list[MemoryHolder]] = {}
        self._sums: dict[str, int] = {}

    def add(self, address: str, holder: MemoryHolder) -> None:
        self._by_address.setdefault(address, []).append(holder)
        self._sums[address] = self._sums.get(address, 0) + holder.held_bytes
        self.held_bytes += holder.held_bytes

    def sort(self) -> None:
        """Sort the holders, the largest last."""
        for holders in self._by_address.values():
            holders.sort(key=lambda one: one.held_bytes)

    def pop_largest(self) -> MemoryHolder:
        address = max(self._sums, key=self._sums.__getitem__)
        holder = self._by_address[address].pop()
        self._sums[address] -= holder.held_bytes
        self.held_bytes -= holder.held_bytes
        return holder


def _nothing() -> int:
    return 0


def _nobody() -> None:
    pass
