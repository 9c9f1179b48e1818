"""kill -9 while the archive is copied into a bucket: whenever it comes, what is in the bucket makes an archive.

    python -m tests.support.mirror_kill_run --kills 100

A MariaDB is written to all the time. Each time: the relay runs for a moment, is killed, and an archive is made from the bucket. It must
be the source's binlogs up to a transaction's end, and never end before where it ended the time before.
"""

import argparse
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from deploy.servers import SERVERS, Server
from relay.mirror.restoring import restore_archive
from relay.object_store.object_store import ObjectStore
from tests.support.binlog_comparison import check_relayed, events_of
from tests.support.free_port import free_port
from tests.support.hand_over import write_load
from tests.support.mirrored_relay import mirrored_relay, objects, wait_copied, whole_files
from tests.support.s3_server import S3Server


def check_bucket(store: S3Server, source: Server, directory: Path) -> tuple[int, int]:
    """Makes an archive from the bucket, compares it with the source's binlogs; its newest binlog's number, and where it ends."""
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


def kill_run(directory: Path, source: Server, kills: int, seed: int, *, said: bool = False) -> list[str]:
    """Kills that often, with a line on stderr for each if `said`; what is in the bucket at the end. Raises: AssertionError."""
    chance = random.Random(seed)
    reached = (0, 0)
    checked = 0
    with S3Server(directory / "s3") as store, mirrored_relay(directory / "relay", source, store, free_port()) as relay:
        with write_load(source):
            for number in range(kills):
                if not relay.running:
                    relay.start()
                time.sleep(chance.uniform(0.5, 4.0))
                relay.kill()
                if whole_files(store) or any(".part-4-" in key or ".part-0-" in key for key in objects(store)):
                    now = check_bucket(store, source, directory / "made")
                    assert now >= reached, f"kill {number}: the copy ended at {reached}, and now at {now}"
                    reached = now
                    checked += 1
                    if said:
                        sys.stderr.write(f"kill {number + 1}: an archive up to binlog {now[0]}, {now[1]}\n")
        assert checked > kills // 2
        relay.start()
        wait_copied(store, *source.master_status(), timeout_s=180)
        relay.stop()
        check_bucket(store, source, directory / "made")
        return objects(store)


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
