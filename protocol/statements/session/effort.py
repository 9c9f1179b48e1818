"""The work that one statement may take, counted in steps, since nothing here has a clock.

The event loop has a few milliseconds for a statement. One that takes more is answered again from its beginning in a thread, where it
may take as long as a SELECT from tables; beyond that it is refused. Work that grows with a client's input is counted before it is
done.
"""

from typing import Final

from protocol.errors import ErrorCode, RelayError, StatementRefused

STEPS_ON_THE_LOOP: Final = 60_000
STEPS_IN_A_THREAD: Final = 20_000_000
"""A step is a tenth of a microsecond of a usual processor, so these are 6 ms and 2 s."""
# The characters that a step reads, compares, changes or sends, by the most expensive of C's functions.
_CHARACTERS_A_STEP: Final = 8


class TooMuchForTheLoop(RelayError):
    """The statement is more work than the event loop has time for: it is answered in a thread."""


class Effort:
    """The effort of one statement. `in_a_thread`: it is answered there, where it may take more."""

    __slots__ = ("_in_a_thread", "_left")

    def __init__(self, *, in_a_thread: bool = False) -> None:
        self._in_a_thread = in_a_thread
        self._left = STEPS_IN_A_THREAD if in_a_thread else STEPS_ON_THE_LOOP

    def spend(self, steps: int) -> None:
        """Count steps. Raises: TooMuchForTheLoop; in a thread StatementRefused (1104)."""
        self._left -= steps
        if self._left < 0:
            raise self._exhausted()

    def spend_on_text(self, characters: int) -> None:
        """Count a text that is read from one end to the other. Raises: as `spend`."""
        self.spend(characters // _CHARACTERS_A_STEP)

    def _exhausted(self) -> Exception:
        if not self._in_a_thread:
            return TooMuchForTheLoop()
        return too_much_work()


def too_much_work() -> StatementRefused:
    """Return ER_TOO_BIG_SELECT."""
    return StatementRefused(
        ErrorCode.ER_TOO_BIG_SELECT,
        f"binlog-relay does not go on with this statement: it takes more than {STEPS_IN_A_THREAD} steps",
    )
