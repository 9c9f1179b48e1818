"""Packed binlogs: what comes out is what went in, by our reader and by zstd's own program, and nothing else ever comes out."""

import random
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay.packed.byte_source import BytesInMemory
from relay.packed.frame_cuts import frame_cuts
from relay.packed.key_ring import KeyRing
from relay.packed.packed_errors import KeyMissing, KeyWrong, PackedDamaged, PackedError, PackedUnknown
from relay.packed.packed_facts import OfArchive
from relay.packed.packed_file import PackedFile
from relay.packed.packed_reader import PackedReader
from relay.packed.packing import PackOptions, pack

NAME = "mysql-bin.000007"
RING = KeyRing({"2026-11": bytes(range(32)), "2026-10": bytes(range(1, 33))}, "2026-11")


def packed_bytes(plain: bytes, cuts: list[int], keys: KeyRing | None = None, file: str = NAME) -> bytes:
    stored: list[bytes] = []
    facts = pack(BytesInMemory(plain), stored.append, file, cuts, PackOptions(level=1), keys=keys)
    assert facts is not None and facts.plain_size == len(plain)
    return b"".join(stored)


def plain_of(stored: bytes, keys: KeyRing | None = RING, file: str = NAME) -> bytes:
    return PackedReader.open(BytesInMemory(stored), file, keys).read_all()


@pytest.fixture(params=[False, True], ids=["plain", "encrypted"])
def keys(request: pytest.FixtureRequest) -> KeyRing | None:
    return RING if request.param else None


@pytest.fixture
def sample() -> tuple[bytes, list[int]]:
    drawn = random.Random(7)
    plain = b"\xfebin" + b"".join(drawn.choice([b"INSERT", b"UPDATE", drawn.randbytes(9)]) for _ in range(500))
    return plain, [700, 1400, 1401, len(plain)]


@settings(max_examples=60, deadline=None)
@given(plain=st.binary(max_size=3000), parts=st.lists(st.integers(1, 900), max_size=12), encrypted=st.booleans())
def test_any_bytes_cut_anywhere_come_back(plain: bytes, parts: list[int], encrypted: bool) -> None:
    cuts = sorted({part for part in parts if part < len(plain)} | ({len(plain)} if plain else set()))
    stored = packed_bytes(plain, cuts, RING if encrypted else None)
    packed = PackedFile.open(BytesInMemory(stored), NAME, RING)
    reader = PackedReader(packed, BytesInMemory(stored))
    assert reader.read_all() == plain
    assert packed.key_id == ("2026-11" if encrypted else None)
    for start in range(0, len(plain), 211):
        assert reader.read(start, 300) == plain[start : start + 300]
        frame = packed.frame_at(start)
        assert frame.plain_start <= start < frame.plain_stop


def test_a_frame_is_read_without_the_others(sample: tuple[bytes, list[int]], keys: KeyRing | None) -> None:
    plain, cuts = sample
    stored = packed_bytes(plain, cuts, keys)
    packed = PackedFile.open(BytesInMemory(stored), NAME, RING)
    start, stop = packed.stored_range(1)
    assert packed.decode(1, stored[start:stop]) == plain[700:1400]


def test_stock_zstd_gives_the_binlog_back(sample: tuple[bytes, list[int]], tmp_path: Path) -> None:
    plain, cuts = sample
    (tmp_path / f"{NAME}.zst").write_bytes(packed_bytes(plain, cuts))
    subprocess.run(["zstd", "-q", "-t", f"{NAME}.zst"], cwd=tmp_path, check=True)
    subprocess.run(["zstd", "-q", "-d", f"{NAME}.zst"], cwd=tmp_path, check=True)
    assert (tmp_path / NAME).read_bytes() == plain


def test_a_file_cut_at_any_byte_is_named_and_gives_nothing(
    sample: tuple[bytes, list[int]], keys: KeyRing | None
) -> None:
    plain, cuts = sample
    stored = packed_bytes(plain, cuts, keys)
    for size in range(len(stored)):
        with pytest.raises(PackedError) as told:
            plain_of(stored[:size])
        assert NAME in str(told.value)


def test_a_byte_that_is_added_is_found(sample: tuple[bytes, list[int]], keys: KeyRing | None) -> None:
    plain, cuts = sample
    stored = packed_bytes(plain, cuts, keys)
    for place in (0, len(stored) // 2, len(stored)):
        with pytest.raises(PackedError):
            plain_of(stored[:place] + b"\0" + stored[place:])


def test_no_changed_byte_gives_other_bytes(sample: tuple[bytes, list[int]], keys: KeyRing | None) -> None:
    plain, cuts = sample
    stored = packed_bytes(plain, cuts, keys)
    drawn = random.Random(3)
    unseen = 0
    for place in range(0, len(stored), 3):
        changed = bytearray(stored)
        changed[place] ^= 1 << drawn.randrange(8)
        try:
            found = plain_of(bytes(changed))
        except PackedError:
            continue
        assert found == plain
        unseen += 1
    # What may change unseen: the facts' own text of a file that is not encrypted, and the copy of the head at an encrypted one's start.
    assert unseen < 160


@settings(max_examples=150, deadline=None)
@given(garbage=st.binary(max_size=400), keep=st.integers(0, 300))
def test_garbage_is_an_error_with_a_name(garbage: bytes, keep: int) -> None:
    stored = packed_bytes(b"\xfebin" * 50, [100, 200], RING)
    for data in (garbage, garbage + stored[-keep:], stored[:-keep] + garbage):
        if data != stored:
            with pytest.raises(PackedError):
                plain_of(data)


def test_encrypted_frames_cannot_be_exchanged_or_come_from_another_file() -> None:
    plain = b"a" * 4096
    stored = [packed_bytes(plain, [1024, 2048, 3072, 4096], RING) for _ in range(2)]
    one, other = (PackedFile.open(BytesInMemory(data), NAME, RING) for data in stored)
    frames = [stored[0][slice(*one.stored_range(number))] for number in range(4)]
    assert len({len(frame) for frame in frames}) == 1, "only frames of one size can be exchanged without being noticed"
    for number, frame in ((0, frames[1]), (1, stored[1][slice(*other.stored_range(1))])):
        with pytest.raises(PackedDamaged, match=f"frame {number} is not what was encrypted there"):
            one.decode(number, frame)


def test_a_frame_left_out_is_found() -> None:
    stored = packed_bytes(b"a" * 4096, [1024, 2048, 3072, 4096], RING)
    start, stop = PackedFile.open(BytesInMemory(stored), NAME, RING).stored_range(2)
    with pytest.raises(PackedDamaged):
        plain_of(stored[:start] + stored[stop:])


def test_a_file_under_another_binlogs_name_is_refused(keys: KeyRing | None) -> None:
    stored = packed_bytes(b"abc", [3], keys)
    with pytest.raises(PackedDamaged, match=r"the binlog in it is mysql-bin\.000007"):
        plain_of(stored, file="mysql-bin.000008")


def test_neither_the_bytes_nor_the_same_ciphertext_are_in_an_encrypted_file() -> None:
    plain = b"INSERT INTO account VALUES ('Erika Mustermann')" * 20
    one, other = (packed_bytes(plain, [len(plain)], RING) for _ in range(2))
    assert b"Erika" not in one and b"INSERT" not in one
    assert one[200:400] != other[200:400]


def test_a_missing_key_is_named_and_a_wrong_one_too() -> None:
    stored = packed_bytes(b"abc", [3], RING)
    with pytest.raises(KeyMissing, match="'2026-11'; no keys were given"):
        plain_of(stored, None)
    with pytest.raises(KeyMissing, match="'2026-11'; keys given: '2026-12'"):
        plain_of(stored, KeyRing({"2026-12": bytes(32)}, None))
    with pytest.raises(KeyWrong, match="the key '2026-11' that was given is not the one"):
        plain_of(stored, KeyRing({"2026-11": bytes(32)}, None))


def test_a_new_key_is_for_new_files_and_old_files_stay_readable() -> None:
    old = packed_bytes(b"old", [3], KeyRing({"2026-10": bytes(range(1, 33))}, "2026-10"))
    new = packed_bytes(b"new", [3], RING)
    assert [plain_of(old), plain_of(new)] == [b"old", b"new"]
    assert PackedFile.open(BytesInMemory(old), NAME, RING).key_id == "2026-10"


def test_a_zstd_file_of_somebody_else_is_told_apart_from_damage(tmp_path: Path) -> None:
    with pytest.raises(PackedError):
        plain_of(subprocess.run(["zstd", "-q", "-c"], input=b"abc" * 99, check=True, capture_output=True).stdout)
    newer = packed_bytes(b"abc", [3]).replace(b'{"format": 2', b'{"format": 9')
    with pytest.raises(PackedUnknown, match=r"format 9.*Start the newer"):
        plain_of(newer)
    older = packed_bytes(b"abc", [3]).replace(b'{"format": 2', b'{"format": 1')
    with pytest.raises(PackedUnknown, match=r"format 1.*packs it again"):
        plain_of(older)


@pytest.mark.parametrize("keys", [None, RING], ids=["plain", "encrypted"])
def test_a_file_of_another_archive_or_generation_is_told_by_what_is_in_it(keys: KeyRing | None) -> None:
    made: list[bytes] = []
    whose = OfArchive("relay-a", 2)
    assert pack(BytesInMemory(b"abc"), made.append, NAME, [3], keys=keys, of=whose) is not None
    stored = BytesInMemory(b"".join(made))
    assert PackedFile.open(stored, NAME, keys, of=whose).facts.archive == "relay-a"
    for other in (OfArchive("relay-a", 1), OfArchive("relay-b", 2)):
        with pytest.raises(PackedDamaged, match="it is of generation 2 of the archive relay-a"):
            PackedFile.open(stored, NAME, keys, of=other)


@pytest.mark.parametrize("keys", [None, RING], ids=["plain", "encrypted"])
def test_by_the_digest_of_its_end_each_byte_of_a_packed_file_is_known(keys: KeyRing | None) -> None:
    plain, cuts = random.Random(2).randbytes(3000), [1000, 2000, 3000]
    stored = packed_bytes(plain, cuts, keys)
    noted = PackedFile.open(BytesInMemory(stored), NAME, keys).end_digest
    # Another file with the same sizes and the same CRC32s of zstd's would be taken for it without the digest.
    other = packed_bytes(plain[::-1], cuts, keys)
    with pytest.raises(PackedDamaged, match="another packed file than the one that was noted"):
        PackedFile.open(BytesInMemory(other), NAME, keys, end_digest=noted)
    packed = PackedFile.open(BytesInMemory(other), NAME, keys)
    start, stop = packed.stored_range(1)
    mixed = BytesInMemory(stored[:start] + other[start:stop] + stored[stop:])
    with pytest.raises(PackedDamaged, match="frame 1 "):
        PackedReader.open(mixed, NAME, keys, end_digest=noted).read_all()


def test_the_end_of_a_file_that_says_it_is_huge_is_not_read() -> None:
    count = (80 << 20) // 12
    footer = (count).to_bytes(4, "little") + b"\x80" + (0x8F92EAB1).to_bytes(4, "little")

    class Huge(BytesInMemory):
        size = 1 << 40  # type: ignore[assignment]

        def read(self, offset: int, count: int) -> bytes:
            assert count < 1 << 20
            return (bytes(count) + footer)[-count:]

    with pytest.raises(PackedDamaged, match="over 64 MiB"):
        PackedFile.open(Huge(b""), NAME)


@settings(max_examples=200, deadline=None)
@given(
    steps=st.lists(st.tuples(st.integers(1, 5000), st.booleans()), max_size=60),
    frame_bytes=st.sampled_from([256, 1000]),
)
def test_frames_are_bounded_and_end_between_transactions_where_they_can(
    steps: list[tuple[int, bool]], frame_bytes: int
) -> None:
    places, at = [], 4
    for step, boundary in steps:
        places.append((at, boundary))
        at += step
    cuts = frame_cuts(places, at, frame_bytes)
    boundaries = {place for place, boundary in places if boundary} | {at}
    assert cuts[-1] == at and cuts == sorted(set(cuts))
    for start, stop in zip([0, *cuts], cuts, strict=False):
        assert stop - start <= 2 * frame_bytes
        if stop not in boundaries:
            assert not any(start < place <= start + 2 * frame_bytes for place in boundaries)


def test_a_reader_of_frames_that_are_many_reads_one_end_and_one_frame() -> None:
    plain = random.Random(1).randbytes(200_000)
    stored = packed_bytes(plain, [*range(20, 200_001, 20)])

    class Counted(BytesInMemory):
        reads = 0

        def read(self, offset: int, count: int) -> bytes:
            self.reads += 1
            return super().read(offset, count)

    source = Counted(stored)
    packed = PackedFile.open(source, NAME)
    assert source.reads == 2, "the table has 120,000 bytes: more than what is read at once"
    assert PackedReader(packed, source).read(100_010, 5) == plain[100_010:100_015]
    assert source.reads == 3
