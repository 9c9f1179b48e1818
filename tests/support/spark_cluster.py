"""Spark's standalone master and its workers, started from the pyspark package on loopback.

Each worker is a separate session of processes, with its executors in it: it can be killed as a machine that fails. The Python of
executors has the packages that are installed here, but not this one: they get that with a submitted job.
"""

import contextlib
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pyspark
import pytest

from deploy.servers.process import start_process
from tests.support.free_port import free_port

_READY_S: Final = 180.0
_LOOPBACK: Final = "127.0.0.1"
# Compiling a JVM's code well costs more than it saves for one proof.
_BRIEF_JAVA: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
_PACKAGE: Final = Path(pyspark.__file__).parent


def need_java() -> None:
    """Skip the test if Spark cannot run."""
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        pytest.skip("there is no Java: Spark needs 17 or later")


def bare_python(directory: Path) -> Path:
    """Return a Python with the packages that are installed here, and without this one, as executors have it."""
    home = directory / "executor-python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    library = home / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    # not by what an editable installation leaves: that is a .pth file itself, which is not looked at there
    (library / "rest.pth").write_text(f"{_PACKAGE.parent}\n{sysconfig.get_path('platlib')}\n")
    return home / "bin" / "python"


@dataclass(frozen=True, slots=True)
class SparkWorker:
    """A worker that was started. `directory` is where its executors work, with their logs."""

    process: subprocess.Popen[bytes]
    directory: Path
    port: int

    def kill(self) -> None:
        """Kill the worker, its executors and their children, as if its machine lost power."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class SparkCluster:
    """A cluster that `with` starts and ends. `master` is its URL; `python` is that of executors; `workers` are those that were
    started."""

    def __init__(self, directory: Path, workers: int = 2, *, cores: int = 1, memory_mb: int = 1024) -> None:
        """Create it; `cores` and `memory_mb` are those of each worker, for executors."""
        self.directory = directory
        self._wanted = workers
        self._cores, self._memory_mb = cores, memory_mb
        self._port, self._page_port = free_port(), free_port()
        self._master: subprocess.Popen[bytes] | None = None
        self.master = f"spark://{_LOOPBACK}:{self._port}"
        self.python = Path()
        self.workers: list[SparkWorker] = []
        self.environment: dict[str, str] = {}
        """The variables of workers that are started from now on; executors inherit them."""

    def start_workers(self, count: int = 1) -> list[SparkWorker]:
        """Start more of them; return when the master knows them."""
        for number in range(len(self.workers) + 1, len(self.workers) + 1 + count):
            directory = self.directory / f"worker{number}"
            directory.mkdir()
            options = ["--cores", str(self._cores), "--memory", f"{self._memory_mb}M", "--work-dir", str(directory)]
            port = free_port()
            addresses = ["--host", _LOOPBACK, "--port", str(port), "--webui-port", str(free_port())]
            process = self._start("worker.Worker", [*addresses, *options, self.master], f"worker{number}.log")
            self.workers.append(SparkWorker(process, directory, port))
        started = self.workers[-count:]
        self._wait(lambda: self._alive() >= {one.port for one in started}, started[-1].directory.with_suffix(".log"))
        return started

    def state(self) -> dict[str, Any]:
        """Return the master's status: workers, applications, their cores."""
        with urllib.request.urlopen(f"http://{_LOOPBACK}:{self._page_port}/json/", timeout=10) as answer:
            told: dict[str, Any] = json.loads(answer.read())
        return told

    def _alive(self) -> set[int]:
        """Return the ports of the workers that the master counts on."""
        return {int(worker["port"]) for worker in self.state()["workers"] if worker["state"] == "ALIVE"}

    def _start(self, name: str, arguments: list[str], log: str) -> subprocess.Popen[bytes]:
        local = self.directory / "local"
        local.mkdir(exist_ok=True)
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            **({"JAVA_HOME": os.environ["JAVA_HOME"]} if "JAVA_HOME" in os.environ else {}),
            "SPARK_HOME": str(_PACKAGE),
            "SPARK_LOCAL_IP": _LOOPBACK,
            "SPARK_LOCAL_DIRS": str(local),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": _BRIEF_JAVA,
            **self.environment,
        }
        return start_process(
            [str(_PACKAGE / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments],
            account=pwd.getpwuid(os.getuid()),
            log=self.directory / log,
            directory=self.directory,
            environment=environment,
        )

    def _wait(self, is_there: Callable[[], bool], log: Path) -> None:
        deadline = time.monotonic() + _READY_S
        while True:
            # the master does not listen yet, or its page is there before what it tells
            with contextlib.suppress(OSError, ValueError):
                if is_there():
                    return
            if time.monotonic() > deadline:
                raise RuntimeError(f"Spark's cluster did not start: {log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.1)

    def __enter__(self) -> Self:
        self.directory.mkdir(parents=True, exist_ok=True)
        self.python = bare_python(self.directory)
        try:
            options = ["--host", _LOOPBACK, "--port", str(self._port), "--webui-port", str(self._page_port)]
            self._master = self._start("master.Master", options, "master.log")
            self._wait(lambda: not self._alive(), self.directory / "master.log")
            self.start_workers(self._wanted)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self.workers:
            worker.kill()
        if self._master is not None:
            self._master.kill()
            self._master.wait()
