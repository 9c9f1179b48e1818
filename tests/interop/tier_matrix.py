"""Every kind of replica, by position, by GTID and of a view, behind a relay whose every binlog but the newest is in a bucket.

    python -m tests.interop.tier_matrix [SOURCE...]

One archive for each source, one S3 server for all. Prints a line for each replica that has the source's tables; ends at the first that
has not. The suite has a part of it: test_tiers.py, test_tier_replicas.py.
"""

import contextlib
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from deploy.servers import SERVERS, Server
from tests.support.bucket_chain import GTID, GTIDS, OF_VIEW, POSITION, BucketChain, Follower
from tests.support.s3_server import S3Server

ROWS: Final = "--binlog-format=ROW"
_OLD_WORDS: Final = ("--character-set-server=utf8mb4", "--collation-server=utf8mb4_general_ci", "--gtid-mode=OFF")
# By what the source is called here: its kind, its options, and who follows it: what docs/SUPPORT.md says that goes together.
MATRIX: Final[dict[str, tuple[str, tuple[str, ...], tuple[Follower, ...]]]] = {
    "mysql56": (
        "mysql56",
        (ROWS,),
        (
            *(Follower(kind, POSITION) for kind in ("mysql56", "mysql97", "mariadb", "mariadb118")),
            Follower("mysql97", OF_VIEW),
        ),
    ),
    "mysql97": ("mysql97", GTIDS, (Follower("mysql97", POSITION), Follower("mysql97", GTID))),
    "mysql97-without-gtids": (
        "mysql97",
        _OLD_WORDS,
        tuple(Follower(kind, POSITION) for kind in ("mysql56", "mysql97", "mariadb", "mariadb118")),
    ),
    "mariadb": (
        "mariadb",
        (ROWS,),
        (
            *(Follower(kind, way) for kind in ("mariadb", "mariadb118") for way in (POSITION, GTID)),
            Follower("mysql97", OF_VIEW),
        ),
    ),
    "mariadb118": (
        "mariadb118",
        (ROWS,),
        (*(Follower("mariadb118", way) for way in (POSITION, GTID)), Follower("mysql97", OF_VIEW)),
    ),
}


def run(names: list[str]) -> None:
    """These sources, one after the other. Raises: AssertionError."""
    with tempfile.TemporaryDirectory(prefix="binlog-relay-tiers-") as scratch:
        Path(scratch).chmod(0o755)
        with S3Server(Path(scratch) / "s3") as storage:
            for name in names:
                kind, options, followers = MATRIX[name]
                with contextlib.ExitStack() as stack:

                    def servers(wanted: str, stack: contextlib.ExitStack = stack) -> Server:
                        return stack.enter_context(SERVERS[wanted]())

                    has_view = any(one.way == OF_VIEW for one in followers)
                    chain = stack.enter_context(
                        BucketChain(servers, kind, Path(scratch) / name, storage, options=options, has_view=has_view)
                    )
                    for number, one in enumerate(followers, start=1):
                        began = time.monotonic()
                        chain.start_anew()
                        asked = len(storage.faults.requests)
                        (replica,) = chain.followers([one])
                        chain.add_and_compare([replica], -number)
                        fetched = len(storage.faults.requests) - asked
                        assert fetched or one.way == OF_VIEW, "nothing was read from the bucket"
                        took_s = time.monotonic() - began
                        print(
                            f"{name} -> {one.kind}, by {one.way}: equal; {fetched} requests, {took_s:.0f} s", flush=True
                        )
                        replica.stop()


if __name__ == "__main__":
    run(sys.argv[1:] or list(MATRIX))
