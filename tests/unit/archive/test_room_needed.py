"""When a transaction is what fills the disk, and how much room another attempt needs."""

import errno

from relay.archive.write.room_needed import SUBSTANTIAL_BYTES, RoomNeeded

FILE = "mysql-bin.000001"
MIB = 1 << 20


def test_a_large_part_of_a_transaction_that_did_not_fit_needs_more_than_that() -> None:
    assert RoomNeeded().after(errno.ENOSPC, FILE, 400, 20 * MIB) == 20 * MIB + SUBSTANTIAL_BYTES
    assert RoomNeeded().after(errno.ENOSPC, FILE, 400, 800 * MIB) == 900 * MIB


def test_a_small_part_is_not_what_fills_the_disk() -> None:
    assert RoomNeeded().after(errno.ENOSPC, FILE, 400, SUBSTANTIAL_BYTES - 1) == 0


def test_other_errors_say_nothing_of_room() -> None:
    for number in (errno.EIO, errno.EDQUOT, 0):
        assert RoomNeeded().after(number, FILE, 400, 100 * MIB) == 0


def test_an_attempt_that_got_less_does_not_lower_what_is_needed() -> None:
    room = RoomNeeded()
    first = room.after(errno.ENOSPC, FILE, 400, 100 * MIB)
    assert room.after(errno.ENOSPC, FILE, 400, 1 * MIB) == first
    assert room.after(errno.ENOSPC, FILE, 400, 200 * MIB) > first


def test_another_transaction_begins_anew() -> None:
    room = RoomNeeded()
    room.after(errno.ENOSPC, FILE, 400, 100 * MIB)
    assert room.after(errno.ENOSPC, FILE, 900, 1 * MIB) == 0
