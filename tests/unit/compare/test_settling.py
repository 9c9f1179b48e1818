"""What differs is looked at again until it is equal or proven to differ."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from protocol.position import Position
from relay.compare.rows import settling
from relay.compare.rows.settling import Settled, SettlingRounds

END = Position("b.000001", 4)


class Place:
    def reach(self, place: Position) -> None:
        assert place == END


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settling.time, "sleep", lambda _seconds: None)


def settle(source: Iterator[int] | int, target: Iterator[int] | int) -> Settled[str, int]:
    def reads(values: Iterator[int] | int) -> Any:
        def read(names: Sequence[str]) -> list[int]:
            return [values if isinstance(values, int) else next(values) for _ in names]

        return read

    place: Any = Place()
    return SettlingRounds(lambda: END, place).settle(["row"], reads(source), reads(target))


def test_a_value_that_comes_to_be_the_source_s_is_equal() -> None:
    assert settle(5, iter([4, 5])) == Settled()


def test_a_value_that_stays_another_one_differs() -> None:
    assert settle(5, 4) == Settled({"row": (5, 4)})


def test_a_value_that_always_changes_is_one_of_those_that_the_source_had() -> None:
    assert settle(iter(range(1000)), iter(range(3, 1000))).unsettled == []


def test_a_value_that_always_changes_and_never_is_the_source_s_is_not_known() -> None:
    assert settle(iter(range(5000)), -1).unsettled == ["row"]
