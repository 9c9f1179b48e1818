"""Sources whose commits wait for an acknowledgement, with their status in common words."""

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Final

from deploy.servers import Server

# Practically for ever: a commit that returned was acknowledged.
NEVER_MS: Final = 3_600_000
_MYSQL: Final = "rpl_semi_sync_source"
_MARIADB: Final = "rpl_semi_sync_master"


def _word(source: Server) -> str:
    return _MARIADB if source.flavour == "mariadb" else _MYSQL


def waiting_source(source: Server, *, enabled: bool = True, options: Sequence[str] = ()) -> Server:
    """Start `source` so that each commit waits for one replica's acknowledgement, after its sync, before it is visible."""
    word = _word(source).replace("_", "-")
    plugin = [] if source.flavour == "mariadb" else ["--plugin-load-add=semisync_source.so"]
    return source.start(
        server_id=1,
        options=[
            *plugin,
            f"--{word}-enabled={'ON' if enabled else 'OFF'}",
            f"--{word}-timeout={NEVER_MS}",
            f"--{word}-wait-point=AFTER_SYNC",
            f"--{word}-wait-no-{'slave' if source.flavour == 'mariadb' else 'replica'}=ON",
            *options,
        ],
    )


def switch(source: Server, on: bool) -> None:
    """Turn it on or off in the running server."""
    source.sql(f"SET GLOBAL {_word(source)}_enabled = {'ON' if on else 'OFF'}")


def facts(source: Server) -> dict[str, str]:
    """Return the server's own counters: clients, status, yes_tx, no_tx, ..., without their long prefix."""
    rows = source.sql(f"SHOW GLOBAL STATUS LIKE '{_word(source)}%'")
    return {str(name).lower().removeprefix(_word(source) + "_"): str(value) for name, value in rows}


def wait_clients(source: Server, count: int = 1, timeout_s: float = 20.0) -> None:
    """Return when so many semi-synchronous replicas are attached."""
    _wait(lambda: facts(source)["clients"] == str(count), f"{count} semi-synchronous replicas", timeout_s)


def _wait(true: Callable[[], bool], what: str, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while not true():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_s:g} s: {what}")
        with contextlib.suppress(InterruptedError):
            time.sleep(0.02)
