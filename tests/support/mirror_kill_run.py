"""A run of kill -9 while the archive is copied into a bucket: at any time, the bucket's content must make an archive.

    python -m tests.support.mirror_kill_run --kills 100

A MariaDB is written to all the time. In each round the relay runs for a moment and is killed, and an archive is made from the bucket.
It must consist of the source's binlogs up to a transaction's end, and never end earlier than the previous one. Now and then the oldest
are purged at the relay, and `archive verify --purged --cure` removes them from the bucket. At the end nothing is left over, in the
bucket or on the disk: `archive verify --deep` has no finding, each object belongs to an archived binlog, and parts only to the newest.
"""

import argparse
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from deploy.servers import SERVERS, Server
from relay.bucket_copy.mirror_parts import part_of
from relay.mirror.restoring import restore_archive
from relay.object_store.object_store import ObjectStore
from tests.support.binlog_comparison import check_relayed, events_of
from tests.support.chain import wait_until
from tests.support.free_port import free_port
from tests.support.hand_over import write_load
from tests.support.mirrored_relay import mirrored_relay, objects, wait_copied, whole_files
from tests.support.relay_process import RelayProcess
from tests.support.s3_server import S3Server

_PURGED_EACH: Final = 8
"""The number of kills between purges."""
_PAUSE_S: Final = 0.03
"""The pause between two transactions: the archive grows by some megabytes a second."""


def purge_oldest(relay: RelayProcess, source: Server) -> None:
    """Purge all but the newest file from the archive and from the source, and remove their remains from the bucket by the cure."""
    relay.start()
    # One file is copied as a whole, and another one follows it.
    wait_until(lambda: len(relay.sql("SHOW BINARY LOGS")) > 2, "it has three binlogs", 60)
    first = relay.sql("SHOW BINARY LOGS")[-1][0]
    relay.sql(f"PURGE BINARY LOGS TO '{first}'")
    relay.stop()
    done = relay.command("archive", "verify", "--purged", "--cure")
    assert "was removed" in done.stdout, done.stdout + done.stderr
    done = relay.command("archive", "verify", "--purged", "--cure")
    assert done.returncode == 0, done.stdout + done.stderr
    source.sql(f"PURGE BINARY LOGS TO '{first}'")


def check_bucket(store: S3Server, source: Server, directory: Path) -> tuple[int, int]:
    """Make an archive from the bucket, and compare it with the source's binlogs; return its newest binlog's number, and its end."""
    made = directory / "source"
    shutil.rmtree(directory, ignore_errors=True)
    told = restore_archive(ObjectStore(store.options("relay-a")), made, None, download=True)
    originals = {path.name: path for path in source.binlogs()}
    names = sorted(path.name for path in made.glob("*.[0-9]*") if path.suffix[1:].isdigit())
    assert names and names == sorted(originals)[: len(names)], (names, sorted(originals))
    for name in names:
        data = (made / name).read_bytes()
        original = originals[name].read_bytes()
        if name != names[-1]:
            check_relayed(data, original, name)
            continue
        last = list(events_of(data, name))[-1]
        assert last.end == len(data) == told.end.offset
        check_relayed(data, original[: len(data)], name)
    return int(names[-1].rpartition(".")[2]), told.end.offset


def kill_run(
    directory: Path, source: Server, kills: int, seed: int, *, purged_each: int = _PURGED_EACH, said: bool = False
) -> list[str]:
    """Kill that often, with a line on stderr for each if `said`; return what is in the bucket at the end. Raises: AssertionError."""
    admin = {"[account]": {"admin": True}}
    chance = random.Random(seed)
    reached = (0, 0)
    checked = packing = 0
    with (
        S3Server(directory / "s3") as store,
        mirrored_relay(directory / "relay", source, store, free_port(), more=admin) as relay,
    ):
        with write_load(source, _PAUSE_S):
            for number in range(kills):
                if not relay.running:
                    relay.start()
                time.sleep(chance.uniform(0.5, 4.0))
                relay.kill()
                packing += any(relay.archive.rglob("*.mirror.tmp"))
                if whole_files(store) or any(".part-4-" in key or ".part-0-" in key for key in objects(store)):
                    now = check_bucket(store, source, directory / "made")
                    assert now >= reached, f"kill {number}: the copy ended at {reached}, and now at {now}"
                    reached = now
                    checked += 1
                    if checked % purged_each == 0:
                        purge_oldest(relay, source)
                    if said:
                        sys.stderr.write(
                            f"kill {number + 1}: an archive up to binlog {now[0]}, {now[1]}; so far {packing} while packing\n"
                        )
        assert checked > kills // 2
        relay.start()
        wait_copied(store, *source.master_status(), timeout_s=180)
        relay.stop()
        check_bucket(store, source, directory / "made")
        check_nothing_left(relay, store)
        return objects(store)


def check_nothing_left(relay: RelayProcess, store: S3Server) -> None:
    """Check that the remains of its kills are removed after the last end of the relay."""
    done = relay.command("archive", "verify", "--deep")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not [path.name for path in relay.archive.rglob("*") if path.name.endswith(".tmp")]
    held = sorted(path.name for path in relay.archive.glob("*.[0-9]*") if path.suffix[1:].isdigit())
    for key in objects(store):
        part = part_of(key)
        if part is not None:
            assert part.file == held[-1], key
        elif key.startswith(held[0].rpartition(".")[0]):
            assert any(key.startswith(f"{name}.") for name in held[:-1]), key


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    wanted = parser.parse_args()
    with SERVERS["mariadb"]() as source, tempfile.TemporaryDirectory(prefix="binlog-relay-mirror-") as made:
        found = kill_run(Path(made), source.start(server_id=1), wanted.kills, wanted.seed, said=True)
    sys.stdout.write(
        f"{wanted.kills} kills, seed {wanted.seed}: an archive each time; {len(found)} objects at the end\n"
    )


if __name__ == "__main__":
    main()
