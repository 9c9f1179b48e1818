"""`binlog-relay compare` on real servers: equal after a migration, and each difference found with its key, and repaired."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ServerFactory
from tests.support.compare_run import CompareRun, unlogged
from tests.support.view_chain import ViewChain, wait_executed

pytestmark = pytest.mark.interop
TABLES = (
    "CREATE DATABASE shop",
    "CREATE TABLE shop.orders (id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, note VARCHAR(50), n DECIMAL(9,3)) ENGINE=InnoDB",
    "INSERT INTO shop.orders (note, n) VALUES ('one', 1), ('two', -2.5), (NULL, NULL), ('', 0), ('five', 5)",
    "CREATE TABLE shop.keyless (a INT, b VARCHAR(9)) ENGINE=InnoDB",
    "CREATE TABLE shop.counted (a INT PRIMARY KEY) ENGINE=MyISAM",
    "INSERT INTO shop.keyless VALUES (1, 'x'), (1, 'x'), (2, NULL), (3, 'y')",
    "CREATE TABLE shop.places (town VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NOT NULL, no INT NOT NULL,"
    " street TEXT, PRIMARY KEY (town, no)) ENGINE=InnoDB",
    "INSERT INTO shop.places VALUES ('Ulm', 1, 'a'), ('ulm ', 2, 'b'), ('ÄÖ', 1, NULL), ('😀', 7, 'c'), ('zürich', 1, 'd')",
    "CREATE TRIGGER shop.numbered BEFORE INSERT ON shop.orders FOR EACH ROW SET NEW.n = IFNULL(NEW.n, 0)",
    "CREATE PROCEDURE shop.sum_up(IN a INT) SELECT SUM(n) FROM shop.orders WHERE id > a",
    "CREATE VIEW shop.named AS SELECT id, note FROM shop.orders WHERE note <> ''",
)


@pytest.fixture(scope="module")
def compared(module_servers: ServerFactory, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CompareRun]:
    """A MySQL 5.6, and a 9.7 that has migrated through a view."""
    with ViewChain(module_servers, "mysql56", tmp_path_factory.mktemp("compare") / "relay") as chain:
        chain.source.execute_many(["SET NAMES utf8mb4", *TABLES])
        target = chain.view_replica()
        chain.wait_viewed()
        wait_executed(target, chain.gtids_of_view(), chain.relay)
        yield CompareRun(chain.relay, chain.source, target)


def repaired(compared: CompareRun, directory: Path) -> list[tuple[str, str, dict[str, object]]]:
    """Compare, repair with the script, check that all is equal then; return what differed: kind, what, key."""
    script = directory / "repair.sql"
    found = compared.records("--script", str(script), code=1)
    compared.repair(script)
    compared.check_equal()
    return [(one["kind"], one["what"], one["key"]) for one in found]


def test_a_migrated_server_is_equal(compared: CompareRun) -> None:
    tables = {one["table"]: (one["verdict"], one["rows"]) for one in compared.check_equal()}
    assert tables == {
        "shop.orders": ("equal", 5),
        "shop.keyless": ("equal", 4),
        "shop.places": ("equal", 5),
        "shop.counted": ("equal", 0),
    }


def test_a_changed_value_is_found_with_its_key(compared: CompareRun, tmp_path: Path) -> None:
    unlogged(compared.target, "UPDATE shop.orders SET note = 'Two' WHERE id = 2")
    assert repaired(compared, tmp_path) == [("row", "different", {"id": 2})]


def test_a_missing_row_is_found_with_its_key(compared: CompareRun, tmp_path: Path) -> None:
    unlogged(compared.target, "DELETE FROM shop.places WHERE no = 7")
    assert repaired(compared, tmp_path) == [("row", "missing", {"town": "😀", "no": 7})]


def test_an_extra_row_is_found_with_its_key(compared: CompareRun, tmp_path: Path) -> None:
    unlogged(compared.target, "SET NAMES utf8mb4", "INSERT INTO shop.places VALUES ('ULM', 9, 'z')")
    assert repaired(compared, tmp_path) == [("row", "extra", {"town": "ULM", "no": 9})]


def test_keys_that_differ_in_case_only_are_one_row_that_differs(compared: CompareRun, tmp_path: Path) -> None:
    unlogged(compared.target, "UPDATE shop.places SET town = 'ULM' WHERE town = 'ulm' AND no = 1")
    assert repaired(compared, tmp_path) == [("row", "different", {"town": "Ulm", "no": 1})]


def test_a_changed_definition_is_found(compared: CompareRun, tmp_path: Path) -> None:
    unlogged(compared.target, "ALTER TABLE shop.orders MODIFY note VARCHAR(60), ADD KEY (n)")
    assert repaired(compared, tmp_path) == [("column", "different", {}), ("key", "extra", {})]


def test_a_missing_trigger_and_a_changed_procedure_are_found(compared: CompareRun, tmp_path: Path) -> None:
    unlogged(
        compared.target,
        "DROP TRIGGER shop.numbered",
        "DROP PROCEDURE shop.sum_up",
        "CREATE PROCEDURE shop.sum_up(IN a INT) SELECT 1",
    )
    assert repaired(compared, tmp_path) == [("procedure", "different", {}), ("trigger", "missing", {})]


def test_another_next_number_is_found(compared: CompareRun, tmp_path: Path) -> None:
    unlogged(compared.target, "ALTER TABLE shop.orders AUTO_INCREMENT = 4000")
    found = compared.records(code=1)
    assert [(one["kind"], one["name"]) for one in found] == [("auto_increment", "shop.orders")]
    assert found[0]["values"] == {"AUTO_INCREMENT": [6, 4000]}
    assert compared.check_equal("--ignore", "auto_increment")
    assert repaired(compared, tmp_path) == [("auto_increment", "different", {})]


def test_duplicates_in_a_table_without_a_key_are_counted(compared: CompareRun, tmp_path: Path) -> None:
    unlogged(
        compared.target, "DELETE FROM shop.keyless WHERE a = 1 LIMIT 1", "INSERT INTO shop.keyless VALUES (2, NULL)"
    )
    assert sorted(repaired(compared, tmp_path), key=repr) == [
        ("row", "extra", {"a": 2, "b": None}),
        ("row", "missing", {"a": 1, "b": "x"}),
    ]


def test_a_missing_table_is_found_once(compared: CompareRun, tmp_path: Path) -> None:
    unlogged(compared.target, "DROP TABLE shop.keyless")
    script = tmp_path / "repair.sql"
    found = compared.records("--script", str(script), code=1)
    assert [(one["kind"], one["name"], one["what"]) for one in found] == [("table", "shop.keyless", "missing")]
    compared.repair(script)
    assert len(repaired(compared, tmp_path)) == 3
