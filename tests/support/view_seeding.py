"""A copy of a source becomes a replica of a view: dump, restore, the statements that `binlog-relay view seed` prints."""

import json
import subprocess
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from deploy.servers import SERVERS, Server
from deploy.servers.mysql97 import MySQL97
from relay.view.seeding.restore_advice import WITHOUT_MODE
from tests.support.chain import wait_until
from tests.support.relay_process import RelayProcess

VIEW = "gtid"
VIEW_USER = "new_replica"
VIEW_PASSWORD = "view-password"
SECTIONS: dict[str, dict[str, Any]] = {
    "[view]": {"name": VIEW},
    "[ account ]": {"user": VIEW_USER, "password": VIEW_PASSWORD, "view": VIEW},
}


def sections(**view: object) -> dict[str, dict[str, Any]]:
    """Return sections of relay.toml: a view with these keys, and an account that sees it."""
    return SECTIONS | {"[view]": {"name": VIEW, **view}}


def dump(
    source: Server, path: Path, databases: Iterable[str], options: Sequence[str] = (), program: str = "mysql97"
) -> None:
    """Make a dump with the source's position, by the program of another server's package."""
    # MySQL's client has mysql_native_password, which an old source wants, as a plugin.
    plugins = [f"--plugin-dir={MySQL97.plugin_directory()}"] if program == "mysql97" else []
    command = [
        *SERVERS[program].mysqldump(),
        *("--no-defaults", *plugins, "--protocol=TCP", "--host=127.0.0.1", f"--port={source.port}", "--user=root"),
        *(() if "--lock-all-tables" in options else ("--single-transaction",)),
        *("--routines", "--triggers", *options, "--databases", *databases),
    ]
    with path.open("wb") as out:
        done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        raise AssertionError(f"{command}: {done.stderr.decode(errors='replace')}")


def restore(server: Server, path: Path) -> None:
    """Run the dump without logging it, without a CHANGE MASTER and without a mode that a new server does not know."""
    edited = subprocess.run(["sed", WITHOUT_MODE, str(path)], stdout=subprocess.PIPE, check=True).stdout
    lines = edited.split(b"\n")
    kept = b"\n".join(line for line in lines if not line.startswith(b"CHANGE MASTER TO"))
    command = [*server.mysql_client(), "--no-defaults", f"--socket={server.socket}", "--user=root"]
    done = subprocess.run(command, input=b"SET sql_log_bin = 0;\n" + kept, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        raise AssertionError(f"{command}: {done.stderr.decode(errors='replace')}")


def place(relay: RelayProcess, *words: str) -> dict[str, Any]:
    """Return the output of `view find`, as JSON."""
    done = relay.command("view", "find", VIEW, *words, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def listed(relay: RelayProcess) -> dict[str, Any]:
    """Return the view in `view list`, as JSON, when the relay has reached its source."""
    done = relay.command("view", "list", "--json")
    deadline = time.monotonic() + 20
    while "has no source yet" in done.stderr and time.monotonic() < deadline:
        done = relay.command("view", "list", "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def wait_made(relay: RelayProcess, file: str, position: int) -> dict[str, Any]:
    """Return the view in `view list` when the view has everything before this place of the source."""
    found: dict[str, Any] = {}

    def is_made() -> bool:
        found.update(listed(relay))
        assert found["stop"] is None, found["stop"]
        return (found["source_file"] or "", found["source_position"] or 0) >= (file, position)

    wait_until(is_made, f"the view is made up to {file}:{position}; it is {found}", 60)
    return found


def seeded(relay: RelayProcess, *words: str) -> list[str]:
    """Return the statements that `view seed` prints, as an operator would fill them in."""
    done = relay.command("view", "seed", VIEW, *words, "--json")
    assert done.returncode == 0, done.stderr
    return filled(json.loads(done.stdout)["statements"])


def filled(statements: Iterable[str]) -> list[str]:
    """Return the statements with the password, and what a test on loopback needs besides."""
    return [one.replace("'PASSWORD'", f"'{VIEW_PASSWORD}'") for one in statements]


def executed(server: Server) -> str:
    """Return @@gtid_executed in one line."""
    return str(server.sql("SELECT @@global.gtid_executed")[0][0]).replace("\n", "")


def wait_executed(server: Server, gtids: str, timeout_s: float = 60.0) -> None:
    """Return when the replica has applied them. Raises: AssertionError with its errors."""

    def has() -> bool:
        status = server.replica_status()
        errors = {key: status[key] for key in ("io_errno", "io_error", "sql_errno", "sql_error") if status.get(key)}
        assert not status.get("sql_errno"), errors
        return bool(server.sql(f"SELECT GTID_SUBSET('{gtids}', @@global.gtid_executed)")[0][0])

    wait_until(has, f"the replica executes {gtids}; it has {executed(server)}, {server.replica_status()}", timeout_s)
