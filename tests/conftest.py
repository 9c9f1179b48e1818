"""Fixtures for all tests: real servers where this machine has them, a skip with the reason where it has not."""

import contextlib
import functools
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

# Before anything brings Arrow in: behind it there is no thread-local memory left for the libraries of this one.
with contextlib.suppress(ImportError):
    import _mysql_connector  # noqa: F401

ROOT = Path(__file__).resolve().parent.parent
# `deploy` is no part of the installed distribution: it is imported from the checkout.
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from deploy.servers import SERVERS, Server, ServerError, ServerUnavailable  # noqa: E402
from tests.support import relay_template  # noqa: E402

# How long one example takes says how busy the machine is; what must be fast is measured where it is promised.
hypothesis.settings.register_profile("suite", deadline=None)
hypothesis.settings.load_profile("suite")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With --dist loadfile a process runs whole files, and one runs all of tests/audit: every further process that did
    would start and warm up a Spark of its own, for 25 s of processor time."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class OneSpark(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "tests/audit" if nodeid.startswith("tests/audit/") else str(super()._split_scope(nodeid))

    return OneSpark(config, log)


# Directories of tests of this file that passed, and how many had failed by then; those of the file before.
_passed: list[Path] = []
_passed_before: list[Path] = []
_failed = 0


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Remove the directories of tests that passed, which would fill the memory that they lie in, when the file after theirs is done:
    a thread of a test may still write to its directory for a moment."""
    global _failed
    made = (getattr(item, "funcargs", None) or {}).get("tmp_path")
    if made is not None and item.session.testsfailed == _failed:
        _passed.append(made)
    _failed = item.session.testsfailed
    if nextitem is None or nextitem.path != item.path:
        for path in _passed_before:
            shutil.rmtree(path, ignore_errors=True)
        _passed_before[:] = _passed
        _passed.clear()


# The servers that tests of this process asked for, with their versions.
_used: dict[str, str] = {}


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A process of several hands what it used to the one that reports."""
    handed = getattr(session.config, "workeroutput", None)
    if handed is not None:
        handed["servers"] = _used


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """One of several processes is done, or died: then it hands over nothing."""
    _used.update(getattr(node, "workeroutput", {}).get("servers", {}))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """What the package sources had that day, below all else: a test may hold for one point release and not the next."""
    yield
    if _used:
        told = ", ".join(f"{name} {version}" for name, version in sorted(_used.items()))
        terminalreporter.write_line(f"servers of this run: {told}")


# Makes a server that is not started yet: servers("mariadb").start(server_id=1, options=[...]).
ServerFactory = Callable[[str], Server]


@functools.cache
def why_not(name: str) -> str | None:
    """None where the server of this name can be started here, else why not. Asked once in a session."""
    kind = SERVERS[name]
    reason = kind.missing()
    if reason is not None:
        return reason
    try:
        kind.template()
    except (ServerUnavailable, ServerError) as error:
        return str(error)
    return None


def need_server(name: str) -> type[Server]:
    """The class of this server; skips the test where it is not available."""
    reason = why_not(name)
    if reason is not None:
        pytest.skip(f"{reason}; `python -m deploy.servers install {name}` may help")
    if name not in _used:
        _used[name] = SERVERS[name].read_version()
    return SERVERS[name]


@pytest.fixture
def servers() -> Iterator[ServerFactory]:
    """Makes servers by name ("mariadb", "mariadb118", "mysql56", "mysql97"); all are killed and their data removed at the end."""
    with contextlib.ExitStack() as made:
        yield lambda name: made.enter_context(need_server(name)())


@pytest.fixture(scope="module")
def module_servers() -> Iterator[ServerFactory]:
    """Like `servers`, for servers that all tests of a module share."""
    with contextlib.ExitStack() as made:
        yield lambda name: made.enter_context(need_server(name)())


@pytest.fixture(scope="session", autouse=True)
def copied_relays() -> Iterator[None]:
    """Relays that tests start are copies of one process that has imported the relay: to import it takes a second each."""
    with relay_template.offered():
        yield


@pytest.fixture(scope="module")
def relays_of_their_own() -> Iterator[None]:
    """Each relay is `python -m relay` in a process of its own: for modules that look at the process, or at its memory."""
    with relay_template.withheld():
        yield
