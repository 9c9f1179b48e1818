"""Packing takes no room from what is received: it waits while there is little, and borrows what it takes."""

from pathlib import Path

import pytest

from relay.archive.archive import Archive
from relay.packed.packing import PackOptions
from relay.packed.packing_room import RESERVE_BYTES, NoRoomToPack, PackingRoom, reserve_of
from relay.retention import retention
from relay.tiers.tier_mover import TierMover
from relay.tiers.tier_rules import TierRules
from tests.support.mirrored_archive import bucket, copied, filled, mirror
from tests.support.tier_archive import check_whole, fill_archive

MIB = 1 << 20


class Disk:
    """Has so much room as it is told, after each look."""

    def __init__(self, *free: int) -> None:
        self._free = list(free)

    def free_bytes(self) -> int:
        return self._free.pop(0) if len(self._free) > 1 else self._free[0]


@pytest.mark.parametrize("free, begins", [(RESERVE_BYTES + 50 * MIB, True), (RESERVE_BYTES + 50 * MIB - 1, False)])
def test_packing_begins_where_half_the_binlog_fits_beside_the_reserve(free: int, begins: bool) -> None:
    room = PackingRoom(lambda: free)
    if begins:
        room.begin(100 * MIB)
        return
    with pytest.raises(NoRoomToPack):
        room.begin(100 * MIB)


@pytest.mark.parametrize(
    "disk, reserve", [(100 << 30, RESERVE_BYTES), (5 << 30, RESERVE_BYTES), (1 << 30, (1 << 30) // 40), (1, MIB)]
)
def test_on_a_small_disk_less_stays_free_so_that_the_mirror_packs_while_retention_waits_for_it(
    disk: int, reserve: int
) -> None:
    assert reserve_of(disk) == reserve
    floor = disk // retention._FLOOR_PART  # with less room [retention] removes what is not copied
    assert disk < 64 * MIB or reserve <= floor / 2
    PackingRoom(lambda: reserve + 2 * MIB, reserve).begin(4 * MIB)
    with pytest.raises(NoRoomToPack, match=f"less than {reserve >> 20} MiB free"):
        PackingRoom(lambda: reserve + 2 * MIB - 1, reserve).begin(4 * MIB)


def test_what_the_last_one_took_is_expected_of_the_next_one_and_a_quarter_more() -> None:
    disk = Disk(1 << 40)
    room = PackingRoom(disk.free_bytes)
    packed = room.begin(100 * MIB)
    packed.wants(20 * MIB)
    packed.is_packed()
    disk._free = [RESERVE_BYTES + 25 * MIB]
    room.begin(100 * MIB)
    disk._free = [RESERVE_BYTES + 25 * MIB - 1]
    with pytest.raises(NoRoomToPack):
        room.begin(100 * MIB)


def test_a_disk_that_becomes_full_meanwhile_ends_it() -> None:
    room = PackingRoom(Disk(1 << 40, RESERVE_BYTES, RESERVE_BYTES - 1).free_bytes)
    packed = room.begin(100 * MIB)
    for _ in range(7):
        packed.wants(MIB)
    with pytest.raises(NoRoomToPack):
        packed.wants(MIB)
    assert room.borrowed_bytes == 7 * MIB
    for _ in range(2):
        packed.give_back()
        assert room.borrowed_bytes == 0


async def test_no_file_is_packed_while_the_disk_has_no_room_for_it_and_it_is_said_what_to_do(tmp_path: Path) -> None:
    wanted = await fill_archive(tmp_path / "archive", 3, 40)
    archive = await Archive.open(tmp_path / "archive")
    disk = Disk(RESERVE_BYTES)
    mover = TierMover(archive, TierRules(hot_bytes=1), PackOptions(room=PackingRoom(disk.free_bytes)))
    await mover.run_once()
    assert {str(file.tier) for file in archive.current.files} == {"hot"}
    assert (
        "packing it would leave less than 128 MiB free on the archive's disk: make room there" in mover.status.failure
    )
    check_whole(archive, wanted, None)
    disk._free = [1 << 40]
    mover._disk_again_s = 0.0
    await mover.run_once()
    await mover.close()
    assert {str(file.tier) for file in archive.current.files} == {"cold", "hot"}
    check_whole(archive, wanted, None)
    await archive.close()


async def test_what_was_borrowed_is_given_back_when_the_plain_file_is_gone(tmp_path: Path) -> None:
    await fill_archive(tmp_path / "archive", 3, 40)
    archive = await Archive.open(tmp_path / "archive")
    room = PackingRoom(lambda: 1 << 40)
    mover = TierMover(archive, TierRules(hot_bytes=1), PackOptions(room=room))
    borrowed = []
    drop = mover._mover.drop
    mover._mover.drop = lambda *moved: (borrowed.append(room.borrowed_bytes), drop(*moved))[1]  # type: ignore[method-assign]
    await mover.run_once()
    await mover.close()
    assert [one > 0 for one in borrowed] == [True] * 3 and room.borrowed_bytes == 0
    await archive.close()


async def test_the_mirror_packs_nothing_on_a_disk_without_room(tmp_path: Path) -> None:
    archive = await filled(tmp_path)
    disk = Disk(RESERVE_BYTES)
    mirrored = mirror(tmp_path, options=PackOptions(room=PackingRoom(disk.free_bytes)))
    with pytest.raises(NoRoomToPack):
        await copied(archive, mirrored)
    assert not [facts for facts in bucket(tmp_path).list() if facts.key.endswith(".zst")]
    disk._free = [1 << 40]
    await copied(archive, mirrored)
    assert not list(archive.directory.glob("*.tmp"))
    await archive.close()
