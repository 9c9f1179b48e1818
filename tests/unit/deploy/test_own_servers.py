"""Servers of one's own: the names of the variables, and what is said of a directory that does not fit."""

from pathlib import Path

import pytest

from deploy.servers import PACKAGED, ServerUnavailable
from deploy.servers.own_servers import PREFIX, named_series, own_servers


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("mysql57", ("mysql", (5, 7))),
        ("mysql80", ("mysql", (8, 0))),
        ("mysql910", ("mysql", (9, 10))),
        ("mariadb55", ("mariadb", (5, 5))),
        ("mariadb106", ("mariadb", (10, 6))),
        ("mariadb1011", ("mariadb", (10, 11))),
        ("mariadb123", ("mariadb", (12, 3))),
        ("mysql", None),
        ("percona57", None),
    ],
)
def test_a_name_means_a_product_and_a_series(name: str, meant: tuple[str, tuple[int, int]] | None) -> None:
    assert named_series(name) == meant


def test_a_variable_that_means_no_server_is_refused_with_names_that_would_do() -> None:
    with pytest.raises(
        ServerUnavailable, match=r"BINLOG_RELAY_SERVER_OLD names no server: .* BINLOG_RELAY_SERVER_MYSQL57"
    ):
        own_servers({f"{PREFIX}OLD": "/opt/old"})


def test_other_variables_and_empty_ones_name_no_server() -> None:
    assert own_servers({"BINLOG_RELAY_SERVERS": "/opt", f"{PREFIX}MYSQL57": ""}) == {}


def reason(name: str, directory: Path) -> str:
    (kind,) = own_servers({f"{PREFIX}{name}": str(directory)}).values()
    found = kind.missing()
    assert found is not None
    return found


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert reason("MYSQL57", tmp_path / "none") == (
        f"BINLOG_RELAY_SERVER_MYSQL57 should name a directory with MySQL 5.7: there is no directory {tmp_path / 'none'}"
    )


def test_a_directory_without_a_server_is_named_with_the_places_that_were_looked_at(tmp_path: Path) -> None:
    assert f"{tmp_path} has no mysqld and no mariadbd, neither itself nor in bin/, sbin/" in reason(
        "MARIADB106", tmp_path
    )


@pytest.fixture
def installed_56(tmp_path: Path) -> Path:
    """Another name of the installed MySQL 5.6, as somebody's own directory."""
    kind = PACKAGED["mysql56"]
    if kind.missing() is not None:
        pytest.skip(str(kind.missing()))
    tmp_path.chmod(0o755)
    (tmp_path / "mysql").symlink_to(Path(kind.program()[0]).parent.parent)
    return tmp_path / "mysql"


@pytest.mark.parametrize(("name", "wanted"), [("MYSQL57", "MySQL 5.7"), ("MARIADB56", "MariaDB 5.6")])
def test_a_server_of_another_version_or_product_than_named_is_refused(
    installed_56: Path, name: str, wanted: str
) -> None:
    version = PACKAGED["mysql56"].read_version()
    assert reason(name, installed_56).endswith(f"{wanted}: the server in {installed_56} is MySQL {version}")
