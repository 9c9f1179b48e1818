"""`binlog-relay compare` against real servers: accounts for it, runs, and what they found."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from deploy.servers import SERVERS, Server
from tests.support.relay_process import RelayProcess
from tests.support.source_proof import proof_of

ACCOUNT: Final = "comparer"
PASSWORD: Final = "password-of-the-comparer"
PRIVILEGES: Final = ("SELECT", "SHOW VIEW", "TRIGGER", "EVENT", "REPLICATION CLIENT")


class CompareRun:
    """Compares the source of a relay with a replica of it."""

    def __init__(self, relay: RelayProcess, source: Server, target: Server, *, has_account: bool = False) -> None:
        """Make the accounts. `has_account`: the source has it."""
        self.relay, self.source, self.target = relay, source, target
        self._password = relay.directory / "comparer.password"
        self._password.write_text(PASSWORD + "\n")
        for server in (target,) if has_account else (source, target):
            make_account(server)

    def account(self, server: Server, user: str = ACCOUNT) -> str:
        """Return the option's value for a server."""
        proof = proof_of(server, {"host": "127.0.0.1", "port": server.port, "user": user})
        keys = "".join(f",{key}={value}" for key, value in proof.items())
        return f"127.0.0.1:{server.port},{user},{self._password}{keys}"

    def words(self, *more: str, source: str | None = None, target: str | None = None) -> list[str]:
        """Return the command's words."""
        named = ["--source", source or self.account(self.source), "--replica", target or self.account(self.target)]
        return ["compare", *named, *more]

    def run(self, *more: str, **servers: str) -> "subprocess.CompletedProcess[str]":
        """Run it to its end."""
        return self.relay.command(*self.words(*more, **servers), timeout_s=300)

    def records(self, *more: str, code: int, key: str = "difference") -> list[dict[str, Any]]:
        """Run it with --json; return its objects of this kind. Raises: AssertionError for another exit code."""
        done = self.run("--json", *more)
        assert done.returncode == code, (done.returncode, done.stdout[-3000:], done.stderr[-3000:])
        return [found[key] for line in done.stdout.splitlines() if key in (found := json.loads(line))]

    def check_equal(self, *more: str) -> list[dict[str, Any]]:
        """Check that all is equal; return the outcomes of tables."""
        done = self.run("--json", *more)
        assert done.returncode == 0, (done.returncode, done.stdout[-3000:], done.stderr[-3000:])
        return [found["table"] for line in done.stdout.splitlines() if "table" in (found := json.loads(line))]

    def repair(self, script: Path) -> None:
        """Run the script at the new server, as an administrator does."""
        command = [
            *SERVERS[self.target.name].mysql_client(),
            "--no-defaults",
            f"--socket={self.target.socket}",
            "--user=root",
        ]
        done = subprocess.run(command, input=script.read_bytes(), capture_output=True, check=False)
        assert done.returncode == 0, (done.stderr.decode()[-2000:], script.read_text()[-3000:])


def make_account(server: Server, privileges: Sequence[str] = PRIVILEGES, user: str = ACCOUNT) -> None:
    """Make an account that a replica keeps for itself."""
    mariadb = server.name.startswith("mariadb")
    more = ["SLAVE MONITOR"] if mariadb and "REPLICATION CLIENT" in privileges else []
    server.execute_many(
        [
            "SET sql_log_bin = 0",
            f"CREATE USER '{user}'@'%' IDENTIFIED BY '{PASSWORD}'",
            f"GRANT {', '.join([*privileges, *more])} ON *.* TO '{user}'@'%'",
        ]
    )


def unlogged(server: Server, *statements: str) -> None:
    """Change a server in a way that no replica and no relay hears of."""
    server.execute_many(["SET sql_log_bin = 0", *statements])
