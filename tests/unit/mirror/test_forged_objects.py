"""Who may write to the bucket and has no key cannot make a relay serve other events in place of encrypted ones."""

from dataclasses import replace
from pathlib import Path

import pytest

from relay.archive.archive import Archive
from relay.archive.storage.archive_errors import ArchiveDamaged, ArchiveError
from relay.bucket_copy.checked_copy import WantedCopy
from relay.bucket_copy.mirror_errors import RestoreRefused
from relay.bucket_copy.signed_object import Signer
from relay.mirror.bucket_origin import BucketOrigin
from relay.mirror.restoring import restore_archive
from relay.packed.byte_source import BytesInMemory
from relay.packed.packed_facts import OF_NOBODY, OfArchive, PackedFacts
from relay.packed.packing import PackOptions, pack
from relay.packed_reads.archive_layer import archive_layer
from relay.packed_reads.shared_frames import SharedFrames
from relay.tiers.tier_mover import TierMover
from relay.tiers.tier_rules import TierRules
from tests.support.mirrored_archive import KEYS, bucket, copied, filled, mirror, note_there, restored
from tests.support.tier_archive import digests_made

FIRST, SECOND = "mysql-bin.000001", "mysql-bin.000002"


def forged(plain: bytes, monkeypatch: pytest.MonkeyPatch, size: int = 0, of: OfArchive = OF_NOBODY) -> bytes:
    """Not encrypted, and sound in itself. size: of all of it, where it must be the same as what was there."""
    data = bytearray(plain)
    data[600:604] = b"EVIL"
    made: list[bytes] = []
    pack(BytesInMemory(bytes(data)), made.append, FIRST, [len(data)], PackOptions(), of=of)
    if not size:
        return b"".join(made)
    encode, room = PackedFacts.encode, size - len(b"".join(made))
    monkeypatch.setattr(
        PackedFacts, "encode", lambda facts: encode(facts)[:-1] + b', "p": "' + b"x" * (room - 9) + b'"}'
    )
    padded: list[bytes] = []
    pack(BytesInMemory(bytes(data)), padded.append, FIRST, [len(data)], PackOptions())
    monkeypatch.undo()
    return b"".join(padded)


async def test_a_running_relay_does_not_read_an_object_that_is_not_encrypted_in_place_of_one_that_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = await filled(tmp_path)
    await digests_made(archive)
    plain = (archive.directory / FIRST).read_bytes()
    mover = TierMover(archive, TierRules(hot_bytes=1, cold_bytes=1), PackOptions(), keys=KEYS, store=bucket(tmp_path))
    await mover.run_once()
    await mover.close()
    await archive.close()
    stored = tmp_path / "bucket" / f"{FIRST}.zst.enc"
    stored.write_bytes(forged(plain, monkeypatch, stored.stat().st_size))
    layer = archive_layer(archive.directory, SharedFrames(1 << 24), bucket(tmp_path), KEYS)
    with layer.stored(archive.directory / SECOND) as sound:
        assert sound.read_all()
    with (
        layer.stored(archive.directory / FIRST) as read,
        pytest.raises(ArchiveDamaged, match="it is not encrypted, and what was stored there was"),
    ):
        read.read_all()
    layer.packed.close()


async def mirrored(tmp_path: Path) -> Archive:
    """Its copy is encrypted; the relay is lost."""
    archive = await filled(tmp_path)
    await copied(archive, mirror(tmp_path, keys=KEYS))
    await archive.close()
    return archive


@pytest.mark.parametrize("download", [False, True], ids=["stays", "downloaded"])
async def test_a_restore_with_an_active_key_takes_no_binlog_that_is_not_encrypted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, download: bool
) -> None:
    archive = await mirrored(tmp_path)
    data = forged((archive.directory / FIRST).read_bytes(), monkeypatch)
    there = tmp_path / "bucket"
    (there / f"{FIRST}.zst").write_bytes(data)
    (there / f"{FIRST}.zst.enc").unlink()
    note = note_there(tmp_path, FIRST)
    place = replace(note.place, stored_name=f"{FIRST}.zst", key_id=None, stored_bytes=len(data))
    # Whoever has no key has only this to sign with.
    signed = Signer(None).sign(f"{FIRST}.place", replace(note, place=place).encode(), "relay-a", 2)
    (there / f"{FIRST}.place").write_bytes(signed)
    with pytest.raises(RestoreRefused, match=r"mysql-bin.000001.place: it was made without the key"):
        restored(tmp_path, KEYS, download=download)
    with pytest.raises(RestoreRefused, match=r"is not encrypted, .* with --accept-unencrypted. Nothing was restored"):
        restored(tmp_path, KEYS, download=download, wanted=WantedCopy(accept_changed=True))
    assert not (tmp_path / "again" / "source").exists()
    with pytest.raises(ArchiveError, match=r"it was made without the key"):
        await BucketOrigin(bucket(tmp_path), "", KEYS).fetch(FIRST, archive.directory)


async def test_a_downloaded_binlog_must_be_encrypted_as_its_name_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = await mirrored(tmp_path)
    data = forged((archive.directory / FIRST).read_bytes(), monkeypatch)
    (tmp_path / "bucket" / f"{FIRST}.zst.enc").write_bytes(data)
    with pytest.raises(RestoreRefused, match="somebody put another file in its place"):
        restored(tmp_path, KEYS)


async def test_a_part_that_is_not_encrypted_is_not_taken_either(tmp_path: Path) -> None:
    archive = await mirrored(tmp_path)
    archive = await Archive.open(archive.directory)
    await copied(archive, mirror(tmp_path / "plain"))
    await archive.close()
    [part] = (tmp_path / "bucket").glob("*.part-*")
    [other] = (tmp_path / "plain" / "bucket").glob("*.part-*")
    part.unlink()
    (part.parent / other.name).write_bytes(other.read_bytes())
    with pytest.raises(RestoreRefused, match="is not encrypted"):
        restored(tmp_path, KEYS)


async def test_binlogs_from_before_there_was_a_key_are_taken_where_that_is_said(tmp_path: Path) -> None:
    archive = await filled(tmp_path)
    await copied(archive, mirror(tmp_path))
    await archive.close()
    with pytest.raises(RestoreRefused, match="--accept-unencrypted"):
        restored(tmp_path, KEYS)
    directory = tmp_path / "again" / "source"
    wanted = WantedCopy(accept_unencrypted=True)
    assert restore_archive(bucket(tmp_path), directory, KEYS, download=True, wanted=wanted).files == 2


async def test_a_binlog_that_is_sound_and_not_the_noted_one_is_refused_by_the_name_of_the_option_that_takes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = await filled(tmp_path)
    plain = (archive.directory / FIRST).read_bytes()
    await copied(archive, mirror(tmp_path))
    await archive.close()
    stored = tmp_path / "bucket" / f"{FIRST}.zst"
    stored.write_bytes(forged(plain, monkeypatch, of=OfArchive("relay-a", 1)))
    with pytest.raises(
        RestoreRefused, match=r"sound, and another one.*the same command with --download --accept-changed"
    ):
        restored(tmp_path, download=False)
    assert not (tmp_path / "again" / "source").exists()
    with pytest.raises(RestoreRefused, match="another packed file than the one that was noted"):
        restored(tmp_path)
    assert restored(tmp_path, wanted=WantedCopy(accept_changed=True)).files == 2
    assert b"EVIL" in (tmp_path / "again" / "source" / FIRST).read_bytes()


async def test_a_binlog_that_is_damaged_there_is_refused_with_what_is_left_to_do(tmp_path: Path) -> None:
    archive = await filled(tmp_path)
    await copied(archive, mirror(tmp_path))
    await archive.close()
    stored = tmp_path / "bucket" / f"{FIRST}.zst"
    stored.write_bytes(stored.read_bytes()[:-100])
    with pytest.raises(RestoreRefused, match=r"remove its \.place object") as refused:
        restored(tmp_path, download=False)
    assert "--download" not in str(refused.value)  # it would not help
    (tmp_path / "bucket" / f"{FIRST}.place").unlink()
    assert restored(tmp_path, download=False).first == SECOND
