"""A binlog that MySQL encrypted at rest: named as such, and read once its server gives it out."""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install '.[audit]'")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[audit]'")

from deploy.servers.mysql97 import MySQL97
from relay.binlog_tables.plan.read_finding import BinlogUnreadable
from relay.binlog_tables.plan.schemas import LEVELS
from tests.audit.test_splits import found_in, rows, splits_of
from tests.conftest import need_server

pytestmark = pytest.mark.interop

KEYRING = "component_keyring_file"


@pytest.fixture
def encrypting() -> Iterator[MySQL97]:
    """A MySQL 9.7 that encrypts its binlogs, with a keyring in a file: it looks for that beside its own program."""
    need_server("mysql97")
    if not (MySQL97.plugin_directory() / f"{KEYRING}.so").exists():
        pytest.skip("this MySQL has no component_keyring_file")
    *loader, program = MySQL97.program()
    with tempfile.TemporaryDirectory(prefix="binlog-relay-keyring-") as made:
        directory = Path(made)
        directory.chmod(0o777)
        for name in (program, str(MySQL97.plugin_directory() / f"{KEYRING}.so")):
            shutil.copy(name, directory)
        (directory / "mysqld.my").write_text(json.dumps({"components": f"file://{KEYRING}"}))
        keys = {"path": str(directory / "keys"), "read_only": False}
        (directory / f"{KEYRING}.cnf").write_text(json.dumps(keys))

        class Encrypting(MySQL97):
            @classmethod
            def program(cls) -> list[str]:
                return [*loader, str(directory / Path(program).name)]

        server = Encrypting()
        try:
            yield server.start(server_id=1, options=[f"--plugin-dir={directory}", "--binlog-encryption=ON"])
        finally:
            server.close()


def test_a_file_that_mysql_encrypted_is_named_and_read_through_its_server(encrypting: MySQL97, tmp_path: Path) -> None:
    encrypting.execute_many(
        [
            "CREATE DATABASE shop",
            "CREATE TABLE shop.t (a INT)",
            "INSERT INTO shop.t VALUES (1), (2)",
            "FLUSH BINARY LOGS",
        ]
    )
    first, second = (path.name for path in encrypting.binlogs())
    for level in LEVELS:
        assert [found[:2] for found in found_in(encrypting.datadir / first, level)] == [(first, "file_encrypted")]
        with pytest.raises(BinlogUnreadable, match=f"file_encrypted in {first}"):
            rows(splits_of(encrypting.datadir / first), level, failfast=True)
    # as the finding says
    login = [f"--socket={encrypting.socket}", "--user=root", "--read-from-remote-server", "--raw"]
    subprocess.run([*encrypting.mysqlbinlog(), "--no-defaults", *login, first], cwd=tmp_path, check=True)
    assert found_in(tmp_path / first) == []
    assert [row["operation"] for row in rows(splits_of(tmp_path / first), "rows")] == ["insert", "insert"]
    assert second not in {path.name for path in tmp_path.iterdir()}
