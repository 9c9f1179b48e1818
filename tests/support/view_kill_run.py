"""SIGKILL of a relay with a view, and of the view's replicas, at random moments under load; and the checks at the end."""

import contextlib
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Self

from deploy.servers import Server
from relay.archive_inspection.verify import verify_archive
from tests.support.binlog_comparison import differences
from tests.support.chain import wait_until
from tests.support.crash_run import MixedWriter
from tests.support.free_port import free_port
from tests.support.relay_process import RelayProcess
from tests.support.table_values import differences as table_differences
from tests.support.table_values import table_values
from tests.support.view_chain import REPLICA_DEFAULTS, VIEW, ViewChain, add_views, view_keys
from tests.support.view_files import binlogs_in, check_same_files
from tests.support.workload import SteadyWriter

SOURCE_OPTIONS = ("--max-binlog-size=300K", "--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1")
# A replica that loses nothing by SIGKILL.
REPLICA_OPTIONS = (*REPLICA_DEFAULTS, "--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1")
DATABASES = ("steady", "mixed")
# SIGKILL of a replica takes MyISAM tables out of step with its gtid_executed, whomever it follows.
VIEW_KEYS = view_keys(engines="innodb")


class ViewKillRun:
    """A source under load that writes both engines, a relay with a view of InnoDB alone, and replicas of it. `with` starts and ends it.

    A subclass may choose `SOURCE`, what writes to it and how tables are compared.

    `seed` decides which process is killed when; the threads' timing does not repeat. `say` gets a line for each kill.
    """

    SOURCE: ClassVar[str] = "mysql56"
    KEYS: ClassVar[dict[str, Any]] = VIEW_KEYS

    def __init__(
        self,
        servers: Callable[[str], Server],
        directory: Path,
        *,
        seed: int,
        replicas: int = 2,
        say: Callable[[str], None] = print,
        pause_s: float = 0.002,
        dependencies: str = "serial",
    ) -> None:
        self._keys = {**self.KEYS, "dependencies": dependencies}
        self._servers = servers
        self._directory = directory
        self._random = random.Random(seed)
        self._count = replicas
        self._say = say
        self._pause_s = pause_s
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            sections: dict[str, dict[str, Any]] = {"archive": {"sync": "interval"}}
            self.chain = stack.enter_context(
                ViewChain(
                    self._servers,
                    self.SOURCE,
                    self._directory / "relay",
                    options=SOURCE_OPTIONS,
                    views=[self._keys],
                    sections=sections,
                )
            )
            self.replicas = [self._replica() for _ in range(self._count)]
            self._steady = stack.enter_context(SteadyWriter(self.chain.source, pause_s=self._pause_s))
            self._rows = stack.enter_context(self._other_writer())
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _other_writer(self) -> contextlib.AbstractContextManager[Any]:
        """Return what writes beside the steady one until it is left; it is left twice."""
        return _RowsWriter(self.chain.source, self._pause_s)

    def _replica(self) -> Server:
        """Return one more replica of the view."""
        return self.chain.view_replica(options=REPLICA_OPTIONS)

    def _accidents(self) -> dict[Callable[[], None], int]:
        """Return the possible accidents, and how often each occurs."""
        return {self._kill_relay: 2, self._kill_replica: 1}

    def befall(self, kills: int) -> None:
        """Cause that many accidents, at least one of each: two of three kills are of the relay, the others of a replica."""
        accidents = self._accidents()
        plan = list(accidents)
        plan += self._random.choices(plan, list(accidents.values()), k=kills - len(plan))
        self._random.shuffle(plan)
        for number, kill in enumerate(plan, 1):
            time.sleep(self._random.uniform(0.05, 1.2))
            started = time.monotonic()
            kill()
            name, took = kill.__name__.strip("_"), time.monotonic() - started
            self._say(f"{number}/{len(plan)} {name} ({took:.2f} s), {self._steady.committed} committed")

    def _kill_relay(self) -> None:
        self.chain.relay.kill()
        time.sleep(self._random.uniform(0, 0.3))
        self.chain.relay.start()

    def _kill_replica(self) -> None:
        replica = self._random.choice(self.replicas)
        replica.kill()
        time.sleep(self._random.uniform(0, 0.3))
        replica.start()

    def settle(self) -> int:
        """End the load and wait for view and replicas; return the GTIDs that the view assigned. Raises: AssertionError."""
        self._steady.stop()
        self._rows.__exit__(None, None, None)
        for replica in self.replicas:
            if replica.replica_status()["io_running"] == "No":
                replica.start_replica()
        return max(self._check(replica) for replica in self.replicas)

    def _check(self, replica: Server) -> int:
        """Wait until it has everything, and compare. Raises: AssertionError."""
        return self.chain.check_replica(replica, DATABASES)

    def findings(self) -> list[str]:
        """Return what is wrong, including the view's bytes; empty if all is well. Ends the relay."""
        chain = self.chain
        found = differences(chain.source.binlogs(), chain.relay.archive)
        found += self._table_findings()
        chain.relay.stop()
        found += [f"{finding}" for finding in verify_archive(chain.view_directory(), deep=True)]
        try:
            check_same_files(chain.view_directory(), self._made_in_one_go())
        except AssertionError as error:
            found.append(str(error))
        for line in chain.relay.log_lines():
            if "Traceback" in str(line["event"]) or line["event"] in ("view_stopped", "dump_request_failed"):
                found.append(f"relay log: {line}")
        return found

    def _table_findings(self) -> list[str]:
        wanted = table_values(self.chain.source, DATABASES)
        return [
            found for replica in self.replicas for found in table_differences(wanted, table_values(replica, DATABASES))
        ]

    def _made_in_one_go(self) -> Path:
        """Return the view of a relay that was never killed, from a copy of the archive."""
        return made_anew(self.chain, self._directory / "fresh")


class _RowsWriter(MixedWriter):
    """A writer of both engines, in ROW format: a view can keep it whatever is rolled back."""

    FORMATS = ("ROW",)


def made_anew(chain: ViewChain, directory: Path) -> Path:
    """Return the directory of the view as a new relay builds it from a copy of the chain's archive, whose source it does not reach."""
    copy = directory / "archive" / "source"
    shutil.copytree(chain.relay.archive, copy, ignore=shutil.ignore_patterns("views", "lock"))
    relay = RelayProcess(directory, chain.source, port=free_port(), sections={"source": {"port": free_port()}})
    add_views(relay, list(chain.views.values()))
    made = relay.archive / "views" / VIEW
    wanted = _sizes(chain.view_directory())
    with relay:
        try:
            wait_until(lambda: _sizes(made) == wanted, "the view is made again", 60 + len(wanted))
        except AssertionError as error:
            found = _sizes(made)
            other = [
                f"{name}: {found.get(name)} of {size} bytes" for name, size in wanted.items() if found.get(name) != size
            ]
            raise AssertionError(f"{error}: {len(other)} of {len(wanted)} files are other: {other[:5]}") from error
        relay.stop()
    return made


def _sizes(directory: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in binlogs_in(directory)}
