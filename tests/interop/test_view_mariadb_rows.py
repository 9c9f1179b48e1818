"""Rows of real MariaDBs on a real MySQL 9.7 behind a view: every value by its bytes, and what there is without the rules."""

from pathlib import Path

import pytest

from tests.conftest import ServerFactory
from tests.support.hex_values import hex_tables
from tests.support.mariadb_view import SOURCES, check_mariadb_replica, mariadb_chain

pytestmark = pytest.mark.interop

OLD_TIMES = ["SET GLOBAL mysql56_temporal_format = OFF"]
TYPES = (
    "CREATE TABLE packed (id INT PRIMARY KEY, a VARCHAR(255) COMPRESSED CHARACTER SET latin1, b VARCHAR(300) COMPRESSED CHARACTER SET"
    " utf8mb4, c TEXT COMPRESSED CHARACTER SET latin1, d LONGBLOB COMPRESSED, e VARBINARY(20) COMPRESSED, f INT)",
    "INSERT INTO packed VALUES (1, 'short', REPEAT('cä', 150), REPEAT('long', 9000), REPEAT(x'00ff', 90000), x'00', 7)",
    "INSERT INTO packed VALUES (2, '', '', '', '', '', NULL), (3, NULL, NULL, NULL, NULL, NULL, 3)",
    "INSERT INTO packed VALUES (4, REPEAT('y', 255), 'x', '\\0', x'8001', x'00', 7)",
    "UPDATE packed SET c = REPEAT('ab', 200), f = f + 1 WHERE id IN (1, 2)",
    "DELETE FROM packed WHERE id = 3",
    "CREATE TABLE natives (id INT PRIMARY KEY, u UUID, s INET6, f INET4, t TEXT)",
    "INSERT INTO natives VALUES (1, 'f81d4fae-7dec-11d0-a765-00a0c91e6b00', '2001:db8::', '10.0.0.0', 'x'),"
    " (2, '123e4567-e89b-42d3-a456-426655442020', '::ffff:1.2.3.32', '255.255.255.32', ''), (3, NULL, '::', '0.0.0.0', NULL)",
    "UPDATE natives SET u = '00000000-0000-0000-0000-000000000000' WHERE id = 2",
    "CREATE TABLE documents (id INT PRIMARY KEY, j JSON)",
    """INSERT INTO documents VALUES (1, '{"a": 1, "b":[1,2.50],"a":2}'), (2, '-0'), (3, NULL),"""
    " (4, '[12345678901234567890123, 1e400]')",
    "CREATE TABLE shapes (id INT PRIMARY KEY, g GEOMETRY, v VARCHAR(20) CHARACTER SET latin1, p POINT, t TEXT CHARACTER SET utf8mb4,"
    " e ENUM('a', 'ä') CHARACTER SET utf8mb4)",
    "INSERT INTO shapes VALUES (1, POINT(1, 2), 'é', POINT(3, 4), 'ä', 'ä'),"
    " (2, ST_GeomFromText('LINESTRING(0 0,1 1)', 4326), '', NULL, NULL, NULL)",
    "CREATE TABLE hashed (a INT, b TEXT, UNIQUE KEY (b))",
    "INSERT INTO hashed VALUES (1, 'x'), (2, NULL), (3, REPEAT('y', 5000))",
    "UPDATE hashed SET b = 'z' WHERE a = 1",
    "CREATE SEQUENCE s",
    "CREATE TABLE numbered (n BIGINT DEFAULT NEXTVAL(s), v INT)",
    "INSERT INTO numbered (v) VALUES (1), (2), (3)",
    "SELECT NEXTVAL(s)",
    "BEGIN",
    "INSERT INTO numbered (v) VALUES (4)",
    "UPDATE numbered SET v = v * 2 WHERE v = 1",
    "COMMIT",
    "CREATE TABLE partial (id INT PRIMARY KEY, a DATE, b DATETIME(3), c TIMESTAMP(6) NULL, d TIME(2))",
    "INSERT INTO partial VALUES (1, '0000-00-00', '2024-00-00 01:02:03.004', '0000-00-00', '-838:59:59.99'),"
    " (2, '2024-02-00', '0000-00-00', '2020-02-02 02:02:02.020202', '-00:00:00.01')",
)
HISTORY = (
    "SET GLOBAL mysql56_temporal_format = ON",
    "CREATE DATABASE h",
    "USE h",
    "CREATE TABLE history (id INT PRIMARY KEY, v VARCHAR(9)) WITH SYSTEM VERSIONING",
    "INSERT INTO history VALUES (1, 'a'), (2, 'b')",
    "UPDATE history SET v = 'c' WHERE id = 1",
    "UPDATE history SET v = 'd' WHERE id = 1",
    "DELETE FROM history WHERE id = 2",
    "CREATE TABLE without_key (id INT, row_a TIMESTAMP(6) GENERATED ALWAYS AS ROW START, row_b TIMESTAMP(6) GENERATED ALWAYS AS"
    " ROW END, PERIOD FOR SYSTEM_TIME (row_a, row_b)) WITH SYSTEM VERSIONING",
    "INSERT INTO without_key (id) VALUES (1)",
    "UPDATE without_key SET id = 2",
)
OLD = (
    "CREATE TABLE times (id INT PRIMARY KEY, a TIME, b TIME(1), c TIME(3), d TIME(6), e DATETIME, f DATETIME(2), g DATETIME(4),"
    " h DATETIME(6), i TIMESTAMP NULL, j TIMESTAMP(1) NULL, k TIMESTAMP(5) NULL, l TIMESTAMP(6) NULL, m VARCHAR(9))",
    "INSERT INTO times VALUES (1, '-838:59:59', '-838:59:58.9', '-00:00:00.001', '12:34:56.789012', '9999-12-31 23:59:59',"
    " '9999-12-31 23:59:59.99', '2020-02-29 12:00:00.0009', '1000-01-01 00:00:00.000001', '2038-01-19 03:14:07',"
    " '1999-12-31 23:59:59.9', '2001-03-01 00:00:00.00001', '1970-01-01 12:00:01.000001', 'end')",
    "INSERT INTO times VALUES (2, '838:59:59', '-00:00:00.1', '-10:00:01.999', '-00:00:01', '0000-00-00', '2024-02-00', '2024-00-00',"
    " '0000-00-00', '0000-00-00', '0000-00-00', '0000-00-00', '0000-00-00', 'zero')",
    "INSERT INTO times (id) VALUES (3)",
    "UPDATE times SET d = '-838:59:58.999999', h = '2020-02-29 12:00:00.123456' WHERE id = 2",
    "DELETE FROM times WHERE id = 3",
)
VECTORS = (
    "CREATE TABLE vectors (id INT PRIMARY KEY, a VECTOR(3), b VECTOR(100))",
    "INSERT INTO vectors VALUES (1, VEC_FromText('[1,-2.5,1e30]'), REPEAT(x'0000803f', 100)), (2, NULL, NULL)",
    "UPDATE vectors SET a = VEC_FromText('[0,0,0]') WHERE id = 1",
)
SESSION = ("SET sql_mode = ''", "SET time_zone = '+00:00'", "SET NAMES utf8mb4", "SET binlog_format = ROW")


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize(
    ("image", "metadata", "more"),
    [
        ("FULL", "FULL", "--log-bin-compress=ON"),
        ("MINIMAL", "NO_LOG", "--log-bin-compress=OFF"),
        ("NOBLOB", "MINIMAL", "--log-bin-compress-min-len=10"),
    ],
    ids=["full", "minimal", "noblob"],
)
def test_values_of_every_type_that_mysql_lacks_are_equal_in_every_byte(
    servers: ServerFactory, tmp_path: Path, name: str, image: str, metadata: str, more: str
) -> None:
    if image == "NOBLOB" and name == "mariadb118":
        image = "FULL_NODUP"
    options = (f"--binlog-row-image={image}", f"--binlog-row-metadata={metadata}", more)
    with mariadb_chain(servers, name, tmp_path / "relay", options=options) as chain:
        replica = chain.view_replica()
        work = [
            *SESSION,
            "CREATE DATABASE d",
            "USE d",
            *TYPES,
            *(VECTORS if name == "mariadb118" else ()),
            *OLD_TIMES,
            *OLD,
            *HISTORY,
        ]
        chain.source.execute_many(work)
        assert check_mariadb_replica(chain, replica, ["d"], keys_left_out=["d.hashed.b"]) > 100
        # row_end is in the key there, so that a row's history has room beside it
        history, held = (hex_tables(server, ["h"]) for server in (chain.source, replica))
        for table, wanted in history.items():
            assert (held[table].columns, held[table].rows) == (wanted.columns, wanted.rows)
        assert [len(table.rows) for table in history.values()] == [4, 2]
