"""Whoever may write to the bucket changes it at random, and no other bytes than those that were archived are restored or served.

    python -m tests.hostile_bucket --runs 2000 --seed 1

Two archives with the same key and the same names, each of two sources, are copied into buckets while they grow, and the states between
are kept. Each run takes the last state of one, and does some of: an object of the other archive, of another generation or of an earlier
state in the place of one; all of an earlier state; cut, flipped, removed, renamed and foreign objects; with the knowledge of all
formats, but not of the key, other events in a binlog, its note and the manifest made to fit. Then the archive is restored, as plain
files and with the binlogs in the bucket; and the relay whose disk is there reads all of them, and `archive verify` looks at them. What
comes is what was archived, or a refusal or damage by name. Without a key a restore believes what was made to fit: there only the relay
whose disk is there is asked.
"""

import argparse
import asyncio
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final
from zlib import crc32

from relay.archive.archive import Archive
from relay.archive.catalog.catalog_rows import file_of, file_row
from relay.archive.catalog.generation_directories import begun_generations
from relay.archive.storage.archive_errors import ArchiveError
from relay.archive.storage.storage_location import LocationNote
from relay.bucket_copy.bucket_gaps import HolesWanted
from relay.bucket_copy.bucket_manifest import MANIFEST_KEY
from relay.bucket_copy.checked_copy import WantedCopy
from relay.bucket_copy.signed_object import Signer, digest_of
from relay.mirror.bucket_check import BucketCheck
from relay.mirror.restoring import restore_archive
from relay.object_store.object_errors import MirrorRefused, ObjectStoreError
from relay.packed.byte_source import BytesInMemory
from relay.packed.key_ring import KeyRing
from relay.packed.packed_errors import PackedError
from relay.packed.packed_facts import OfArchive
from relay.packed.packed_file import PackedFile
from relay.packed.packing import PackOptions, pack
from relay.packed_reads.archive_layer import archive_layer
from relay.packed_reads.shared_frames import SharedFrames
from relay.tiers.tier_check import TierCheck
from relay.tiers.tier_mover import OwnBucket, TierMover
from relay.tiers.tier_rules import TierRules
from tests.support.generation_filling import A, B, append_files, change_source, identity, mysql_series
from tests.support.mirrored_archive import KEYS, bucket, copied, mirror
from tests.support.tier_archive import digests_made

_NAMED: Final = (MirrorRefused, PackedError, ObjectStoreError)
_C: Final = "33333333-71ca-11e1-9e33-c80aa9429562"
_D: Final = "44444444-71ca-11e1-9e33-c80aa9429562"


@dataclass
class MadeArchive:
    """place: of `archive/source` and `bucket`. states: the bucket as it was, oldest first. plain: by generation's folder and name,
    what is archived."""

    place: Path
    uuid: str
    states: list[dict[str, bytes]] = field(default_factory=list)
    plain: dict[str, bytes] = field(default_factory=dict)
    numbers: list[int] = field(default_factory=list)


def objects_of(place: Path) -> dict[str, bytes]:
    """All that is in the bucket, by key."""
    root = place / "bucket"
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


async def make_archive(place: Path, uuid: str, first: str, second: str, keys: KeyRing | None) -> MadeArchive:
    """Of two sources, which wrote the same names; copied while it grew, and at last moved into the bucket."""
    made = MadeArchive(place, uuid)
    root = place / "archive" / "source"
    archive = await Archive.open(root)
    (root / "server_uuid").write_text(f"{uuid}\n")
    archive.current.set_identity(identity(first, 1))
    copying = mirror(place, uuid, keys=keys)

    async def copy() -> None:
        await digests_made(archive)
        await copied(archive, copying)
        made.states.append(objects_of(place))
        made.numbers.append(copying.manifest.manifest.sequence)

    series = mysql_series(1, f"{first}:1-3", f"{first}:4-6", f"{first}:7-8")
    await append_files(archive, series[:2])
    await copy()
    await append_files(archive, series[2:])
    await copy()
    later = mysql_series(1, f"{second}:1-3", f"{second}:4-6", f"{second}:7-9", start=f"{first}:1-8")
    await change_source(archive, identity(second, 2), later[:2])
    await copy()
    await append_files(archive, later[2:])
    await copy()
    for generation in archive.all:
        folder = "" if generation.number == 1 else f"{generation.directory.name}/"
        made.plain |= {
            folder + file.name: generation.path(file.name).read_bytes()[: file.end] for file in generation.files
        }
    own = OwnBucket(copying._stop, copying._ownership, keeps_purged=True)
    for rules in (TierRules(hot_bytes=1), TierRules(hot_bytes=1, cold_bytes=1)):
        mover = TierMover(archive, rules, PackOptions(level=1), keys=keys, store=bucket(place), own=own)
        await mover.run_once()
    await archive.close()
    made.states.append(objects_of(place))
    made.numbers.append(copying.manifest.manifest.sequence)
    return made


class Vandal:
    """Changes a bucket, without its key. chance: decides all."""

    def __init__(self, chance: random.Random, made: MadeArchive, other: MadeArchive) -> None:
        self._chance = chance
        self._made = made
        self._other = other
        self.there = dict(made.states[-1])
        self.is_old = False
        """All of it is an earlier state: nothing there tells."""
        self.has_forged = False
        """What anybody can make without a key was made to fit."""
        self.did: list[str] = []

    def act(self) -> None:
        """One thing."""
        acts: list[Callable[[], str]] = [
            *[self.swap_with_other] * 3,
            *[self.swap_generation] * 3,
            *[self.replay] * 3,
            *(
                self.replay_all,
                self.cut,
                self.flip,
                self.remove,
                self.remove,
                self.rename,
                self.foreign,
                self.remove_newest,
            ),
            *[self.forge] * 2,
        ]
        act = self._chance.choice(acts)
        self.did.append(f"{act.__name__} {act()}")

    def _key(self, wanted: Callable[[str], bool] = lambda key: key != "binlog-relay.json") -> str:
        return self._chance.choice(sorted(filter(wanted, self.there)) or [MANIFEST_KEY])

    def swap_with_other(self) -> str:
        """Of the other archive: one object, or all of a binlog."""
        key, there = self._key(), self._other.states[-1]
        stem = key.partition(".zst")[0].removesuffix(".place")
        keys = [key] if self._chance.random() < 0.5 else [one for one in there if one.startswith(stem)]
        self.there |= {one: there[one] for one in keys if one in there}
        return str(keys)

    def swap_generation(self) -> str:
        """Of the other generation of the same archive."""
        key = self._key()
        twin = key.removeprefix("g0002/") if key.startswith("g0002/") else f"g0002/{key}"
        stem, stem_twin = (one.partition(".zst")[0].removesuffix(".place") for one in (key, twin))
        for one in [one for one in self.there if one.startswith(stem)] if self._chance.random() < 0.5 else [key]:
            source = stem_twin + one.removeprefix(stem)
            if source in self.there:
                self.there[one] = self.there[source]
        return f"{key} <- {twin}"

    def replay(self) -> str:
        """One object as it was earlier, or one that was there then."""
        old = self._chance.choice(self._made.states[:-1])
        key = self._chance.choice(sorted(old))
        self.there[key] = old[key]
        return key

    def replay_all(self) -> str:
        """All of an earlier state, in which the rest may be mixed."""
        old = self._chance.randrange(len(self._made.states) - 1)
        if self._chance.random() < 0.3:
            self.there = dict(self._made.states[old])
            self.is_old = True
        else:
            self.there |= self._made.states[old]
        return str(old)

    def cut(self) -> str:
        """Some bytes at its end, or all of them, are missing."""
        key = self._key()
        data = self.there[key]
        self.there[key] = data[: self._chance.choice([0, len(data) // 2, max(0, len(data) - 1)])]
        return key

    def flip(self) -> str:
        """One bit."""
        key = self._key()
        data = bytearray(self.there[key] or b"\0")
        data[self._chance.randrange(len(data))] ^= 1 << self._chance.randrange(8)
        self.there[key] = bytes(data)
        return key

    def remove(self) -> str:
        """One object."""
        key = self._key()
        self.there.pop(key, None)
        return key

    def remove_newest(self) -> str:
        """All of the newest binlogs of a generation."""
        folder = self._chance.choice(["", "g0002/"])
        number = self._chance.choice([2, 3])
        names = [f"{folder}mysql-bin.{one:06d}" for one in range(number, 4)]
        self.there = {key: data for key, data in self.there.items() if not key.startswith(tuple(names))}
        return str(names)

    def rename(self) -> str:
        """Under the name of another one."""
        key, to = self._key(), self._key()
        self.there[to] = self.there.get(key, b"")
        return f"{key} -> {to}"

    def foreign(self) -> str:
        """What nobody wrote."""
        names = (
            *("mysql-bin.000009.place", "mysql-bin.99999999999999999999.place", "g0003/mysql-bin.000001.place"),
            *(
                "mysql-bin.000002.part-4-99.zst",
                "manifest-000000-99.json",
                "g0002/ledger.jsonl",
                "g0009/x",
                MANIFEST_KEY,
            ),
        )
        deep = b'{"sum": 1, "place": ' + b"[" * 5000
        key = self._chance.choice(names)
        self.there[key] = self._chance.choice(
            [b"", b"{}", b"[]\n{}", deep, b'{"format": 1}', b"x" * 9000, b"null\nnull"]
        )
        if key.endswith(".place"):
            self.there.setdefault(key.removesuffix("place") + "zst", b"x")
        return key

    def forge(self) -> str:
        """Other events in a binlog; its note, the page and the manifest are made to fit, as well as that goes without the key."""
        key = self._key(lambda key: key.endswith((".zst", ".zst.enc")) and ".part-" not in key)
        folder, slash, name = key.rpartition("/")
        folder, file = folder + slash, name.partition(".zst")[0]
        if file not in (one.rpartition("/")[2] for one in self._made.plain) or folder + file not in self._made.plain:
            return "nothing"
        plain = bytearray(self._made.plain[folder + file])
        at = self._chance.randrange(4, len(plain))
        plain[at] ^= 1
        made: list[bytes] = []
        of = OfArchive(self._made.uuid, 2 if folder else 1)
        pack(BytesInMemory(bytes(plain)), made.append, file, [len(plain)], PackOptions(), of=of)
        stored = b"".join(made)
        self.there[key] = stored
        self.has_forged = True
        if self._chance.random() < 0.3:
            return f"{key} alone"
        try:
            self._forge_note(folder, file, stored, f"crc32:{crc32(plain):08x}")
        except (KeyError, ValueError, TypeError, StopIteration):
            return f"{key}, as well as what was left of the rest allows"
        return f"{key} and what lists it"

    def _forge_note(self, folder: str, file: str, stored: bytes, digest: str) -> None:
        key = f"{folder}{file}.place"
        signer, archive, number = Signer(None), self._made.uuid, self._made.numbers[-1]
        content, _, line = self.there[key].rpartition(b"\n")
        note = LocationNote.decode(content)
        row = file_of(note.file_row)
        row.digest = digest
        end = PackedFile.open(BytesInMemory(stored), file).end_digest
        place = replace(
            note.place, stored_bytes=len(stored), digest=f"sha256:{digest_of(stored)}", end_digest=end, key_id=None
        )
        forged = LocationNote(place, file_row(row), note.gtids).encode()
        signed = signer.sign(key, forged, archive, number, json.loads(line)["bound"])
        self.there[key] = signed
        if self._chance.random() < 0.3:
            return
        content = self.there[MANIFEST_KEY].rpartition(b"\n")[0]
        told = json.loads(content)
        number_of_page, (page, _digest) = next(iter(told["generations"][folder]["pages"].items()))
        files = json.loads(self.there[page])
        self.there[page] = json.dumps({**files, file: digest_of(signed)}, sort_keys=True).encode()
        told["generations"][folder]["pages"][number_of_page] = [page, digest_of(self.there[page])]
        self.there[MANIFEST_KEY] = signer.sign(MANIFEST_KEY, json.dumps(told).encode(), archive, number)


class Campaign:
    """archives: with the key that is used, or without one."""

    def __init__(self, place: Path, keys: KeyRing | None) -> None:
        self._keys = keys
        self._place = place
        self.counts = Counter[str]()
        self._made, self._other = asyncio.run(self._make())

    async def _make(self) -> tuple[MadeArchive, MadeArchive]:
        return (
            await make_archive(self._place / "one", "11111111-2222-3333-4444-555555555555", A, B, self._keys),
            await make_archive(self._place / "two", "66666666-2222-3333-4444-555555555555", _C, _D, self._keys),
        )

    def run(self, seed: int) -> None:
        """One bucket. Raises: AssertionError, with what was done to it; and whatever has no name."""
        chance = random.Random(seed)
        vandal = Vandal(chance, self._made, self._other)
        for _ in range(chance.choice([1, 1, 1, 2, 3])):
            vandal.act()
        where = f"seed {seed}: {vandal.did}"
        place = self._made.place
        shutil.rmtree(place / "bucket")
        for key, data in vandal.there.items():
            path = place / "bucket" / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        try:
            if self._keys is not None or not vandal.has_forged:
                self._restored(chance, vandal, where)
            self._served(where)
            self._verified(vandal, where)
        except AssertionError:
            raise
        except Exception as error:
            raise AssertionError(f"{where}: {type(error).__name__} {error}") from error

    def _restored(self, chance: random.Random, vandal: Vandal, where: str) -> None:
        for download in (True, False):
            directory = self._place / "again" / "source"
            shutil.rmtree(directory.parent, ignore_errors=True)
            holes = chance.choice([HolesWanted.REFUSE, *HolesWanted])
            number = self._made.numbers[-1] if chance.random() < 0.5 else 0
            wanted, store = WantedCopy(at_least=number), bucket(self._made.place)
            try:
                told = restore_archive(store, directory, self._keys, download=download, holes=holes, wanted=wanted)
            except _NAMED as error:
                assert str(error) and "Traceback" not in str(error), where
                assert not directory.exists(), where
                self.counts["refused"] += 1
                continue
            self.counts["restored"] += 1
            assert not told.doubts, where
            if not told.holes and not vandal.is_old and told.manifest == self._made.numbers[-1]:
                newest = max(self._made.plain, key=lambda key: (key.startswith("g"), key))
                ended = told.end.file, told.end.offset
                assert ended == (newest.rpartition("/")[2], len(self._made.plain[newest])), (where, told)
            assert not (number and told.manifest < number), where
            self._compare(directory, told.downloaded, where)

    def _compare(self, directory: Path, downloaded: bool, where: str) -> None:
        """What was restored with what was archived."""
        layer = archive_layer(directory, SharedFrames(1 << 24), bucket(self._made.place), self._keys)
        for key, plain in self._made.plain.items():
            path = directory / key
            if path.exists():
                data = path.read_bytes()
                assert plain.startswith(data), (where, key)
            elif not downloaded and path.with_name(f"{path.name}.place").exists():
                self._read(layer, path, plain, where)
        layer.packed.close()
        known = b"".join(
            one for state in self._made.states for key, one in state.items() if key.endswith("ledger.jsonl")
        )
        for ledger in directory.rglob("ledger.jsonl"):
            for line in ledger.read_bytes().splitlines():
                assert line in known, (where, line)

    def _served(self, where: str) -> None:
        """By the relay whose disk is there."""
        root = self._made.place / "archive" / "source"
        layer = archive_layer(root, SharedFrames(1 << 24), bucket(self._made.place), self._keys)
        for key, plain in self._made.plain.items():
            if not (root / key).exists():
                self._read(layer, root / key, plain, where)
        layer.packed.close()

    def _read(self, layer: object, path: Path, plain: bytes, where: str) -> None:
        try:
            with layer.stored(path) as stored:  # type: ignore[attr-defined]
                assert stored.read_all() == plain, (where, path.name)
            self.counts["served"] += 1
        except ArchiveError as error:
            assert error.file == path.name and str(error), where
            self.counts["damage by name"] += 1

    def _verified(self, vandal: Vandal, where: str) -> None:
        """Each binlog in the bucket that is not what was stored has a finding, and so has what the manifest binds."""
        root, store, was = self._made.place / "archive" / "source", bucket(self._made.place), self._made.states[-1]
        found = set[str]()
        for number, directory in begun_generations(root):
            check = TierCheck(root, directory, store=store, keys=self._keys, deep=True)
            found |= {f"{number} {finding.file}" for finding in check.run()}
        whole = BucketCheck(root, store, self._made.uuid, is_mirror=True, deep=True)
        more = list(whole.run(begun_generations(root), self._keys, PackOptions()))
        found |= {f"{number} {finding.file}" for number, finding in more}
        changed = {key for key in {*was, *vandal.there} if was.get(key) != vandal.there.get(key)}
        for key in sorted(changed):
            folder, _, name = key.rpartition("/")
            if name.endswith((".zst", ".zst.enc")) and ".part-" not in name and folder in ("", "g0002") and key in was:
                file = name.partition(".zst")[0]
                number = 2 if folder else 1
                told = {f"{number} {file}", f"{number} {name}"} & found
                if (root / folder / file).exists() and f"1 {MANIFEST_KEY}" in found:
                    continue  # what is copied behind the newest that is there is not asked for
                assert told, (where, key, sorted(found))
            elif key == MANIFEST_KEY:
                assert more, (where, key)
        self.counts["findings"] += len(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    wanted = parser.parse_args()
    for keys in (None, KEYS):
        with tempfile.TemporaryDirectory(prefix="binlog-relay-bucket-") as made:
            campaign = Campaign(Path(made), keys)
            for number in range(wanted.runs // 2):
                campaign.run(wanted.seed + number)
        kind = "not encrypted" if keys is None else "encrypted"
        sys.stdout.write(f"{wanted.runs // 2} buckets, {kind}, from seed {wanted.seed} on: {dict(campaign.counts)}\n")


if __name__ == "__main__":
    main()
