"""How far replicas have applied, for the API and for metrics."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from relay.applying.applying_state import ApplyingState, text_without_state
from relay.http.facts.relay_snapshot import RelaySnapshot, ReplicaState

Samples = Iterable[tuple[tuple[str, ...], float]]


def replica_row(replica: ReplicaState, elsewhere: Sequence[ApplyingState]) -> dict[str, Any]:
    """Return one replica as the API shows it. elsewhere: the states that belong to no known replica."""
    row = asdict(replica)
    del row["applying"]
    state = replica.applying
    if state is None:
        return row | {"applied": None, "applied_text": text_without_state(elsewhere)}
    return row | {"applied": state.record(), "applied_text": state.text}


def applied_samples(shot: RelaySnapshot) -> Iterator[tuple[str, Samples]]:
    """Yield the samples of each family of this part."""
    named = [((one.replica, str(one.server_id)), one) for one in shot.applying]
    yield "replica_applied_known", [(labels, float(one.is_known)) for labels, one in named]
    yield "replica_applying", [(labels, float(one.channel.applies)) for labels, one in named if one.channel is not None]
    yield (
        "replica_applied_lag_seconds",
        [(labels, one.distance.seconds) for labels, one in named if one.distance.seconds is not None],
    )
    yield (
        "replica_applied_lag_bytes",
        [(labels, float(one.distance.bytes)) for labels, one in named if one.distance.bytes is not None],
    )
