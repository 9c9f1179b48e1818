"""How far one replica has applied, as status, page and metrics show it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from relay.applying.replica_channel import ReplicaChannel
from relay.process.shown_amounts import shown_bytes, shown_time

_NO_ACCOUNT: Final = "not known: relay.toml gives no account at this replica ([[replica]])"


def text_without_state(others: Iterable["ApplyingState"]) -> str:
    """Return what is said of a replica that none of relay.toml is known to be. others: the states that belong to no known replica."""
    if any(not one.server_id for one in others):
        return f"{_NO_ACCOUNT}, or it is one that does not answer"
    return _NO_ACCOUNT


@dataclass(frozen=True, slots=True)
class AppliedDistance:
    """From what a replica has applied to the end of what it is served. bytes, seconds: 0: it has applied all; None: not known, and
    `why`. transactions: those that it lacks; None: not known."""

    bytes: int | None = None
    seconds: float | None = None
    transactions: int | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class ApplyingState:
    """The state of a replica of relay.toml. replica: HOST:PORT, as written there. server_id: 0: it has never answered.

    asked_at: Unix time of the newest question. why: the reason why nothing is known now; empty: `channel` and `distance` are known.
    """

    replica: str
    asked_at: float
    server_id: int = 0
    uuid: str = ""
    why: str = ""
    channel: ReplicaChannel | None = None
    distance: AppliedDistance = AppliedDistance()

    @property
    def place(self) -> str:
        """The place up to which it has applied, FILE:OFFSET; empty: not known."""
        return f"{self.channel.file}:{self.channel.offset}" if self.channel is not None and self.channel.file else ""

    @property
    def is_known(self) -> bool:
        """True if it is known how far it has applied. What it says of its seconds is not enough: it says 0 also where it has not
        received what there is."""
        amounts = (self.distance.bytes, self.distance.seconds, self.distance.transactions)
        return self.channel is not None and any(amount is not None for amount in amounts)

    @property
    def has_all(self) -> bool:
        """True if it has applied all that it is served."""
        return self.channel is not None and (self.distance.bytes == 0 or self.distance.transactions == 0)

    @property
    def text(self) -> str:
        """One sentence for people, without a full stop."""
        channel = self.channel
        if channel is None:
            return f"not known: {self.why}"
        notes = [self._amount]
        if not channel.applies:
            notes.append("it applies nothing: its SQL thread is stopped")
        if channel.receives != "Yes":
            notes.append("it receives nothing" if channel.receives == "No" else "it is connecting to the relay")
        if channel.delay_s:
            notes.append(f"a delay of {shown_time(channel.delay_s)} is set there")
        if channel.error:
            notes.append(f"its last error: {channel.error}")
        return "; ".join(notes)

    @property
    def _amount(self) -> str:
        if self.has_all:
            return "everything that it is served"
        distance, said_s = self.distance, self.channel.seconds_behind if self.channel is not None else None
        said = "" if said_s is None else f"{shown_time(said_s)} by its own account"
        if not self.is_known:
            return f"not known: {distance.why}" + (f" ({said})" if said else "")
        amounts = []
        if distance.bytes is not None:
            amounts.append(shown_bytes(distance.bytes))
        if distance.transactions is not None:
            amounts.append(f"{distance.transactions} transaction{'' if distance.transactions == 1 else 's'}")
        if distance.seconds is not None:
            amounts.append(shown_time(distance.seconds))
        behind = f"{', '.join(amounts)} behind"
        return f"{behind} ({said})" if said and distance.seconds is None else behind

    def record(self) -> dict[str, Any]:
        """Return it for JSON. known: false where nothing says how far it has applied; `text` says it all in a sentence."""
        channel, distance = self.channel, self.distance
        return {
            "replica": self.replica,
            "server_id": self.server_id or None,
            "asked_at": self.asked_at or None,
            "known": self.is_known,
            "text": self.text,
            "behind_bytes": distance.bytes,
            "behind_transactions": distance.transactions,
            "behind_s": distance.seconds,
            "applies": None if channel is None else channel.applies,
            "receives": None if channel is None else channel.receives,
            "file": None if channel is None else channel.file,
            "offset": None if channel is None else channel.offset,
            "seconds_behind_source": None if channel is None else channel.seconds_behind,
            "delay_s": None if channel is None else channel.delay_s,
            "channel": None if channel is None else channel.name,
            "error": None if channel is None else channel.error or None,
        }
