"""The feed as Structured Streaming runs it, for as long as its input is open; then what each micro-batch took, as JSON.

python -m tests.bench.spark_feed FEED.toml CHECKPOINT
"""

import json
import sys
import threading
from statistics import median

from relay.spark.feed_query import feed_query
from relay.spark.spark_session import local_session


def main() -> int:
    """Runs until standard input ends."""
    ended = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait, daemon=True).start()
    query = feed_query(local_session(), sys.argv[1], sys.argv[2])
    seen: dict[int, dict[str, int]] = {}
    while not ended.wait(0.5) and query.isActive:
        seen |= {one.batchId: dict(one.durationMs) for one in query.recentProgress if "addBatch" in one.durationMs}
    if query.exception() is not None:
        sys.exit(str(query.exception()))
    query.stop()
    durations = list(seen.values())[2:]  # the first ones start Python's workers
    if not durations:
        sys.exit("there were no more than two micro-batches: nothing to measure")
    spent = {name: median(one.get(name, 0) for one in durations) for name in ("triggerExecution", "addBatch")}
    print(json.dumps({"micro_batches": len(durations), **spent}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
