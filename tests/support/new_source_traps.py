"""Traps as in dependency_traps.py, with features of a MySQL 9.7 source that an old one does not have."""

from typing import Final

from tests.support.dependency_checker import COLLATIONS, EXPRESSIONS, FOREIGN_KEYS, PRIMARY, SECONDARY
from tests.support.dependency_traps import DUPLICATE, NO_PARENT, Trap

_ARRAY: Final = "CREATE TABLE t (id INT PRIMARY KEY, n INT, j JSON, UNIQUE KEY many ({}))"
_PARENT: Final = "CREATE TABLE p (id INT PRIMARY KEY)"

NEW_SOURCE_TRAPS: Final = (
    Trap(
        "value of an array",
        EXPRESSIONS,
        (_ARRAY.format("(CAST(j->'$.a' AS UNSIGNED ARRAY))"), """INSERT INTO t VALUES (1, 1, '{"a": [1, 2]}')"""),
        "DELETE FROM t",
        """INSERT INTO t VALUES (2, 2, '{"a": [3, 2]}')""",
        DUPLICATE,
    ),
    Trap(
        "value of an array that is changed",
        EXPRESSIONS,
        (
            _ARRAY.format("n, (CAST(j AS CHAR(9) ARRAY))"),
            """INSERT INTO t VALUES (1, 7, '["x", "y"]'), (2, 8, '["x"]')""",
        ),
        """UPDATE t SET j = JSON_ARRAY('z') WHERE id = 1""",
        """INSERT INTO t VALUES (3, 7, '["v", "y"]')""",
        DUPLICATE,
    ),
    Trap(
        "value of an array by CREATE INDEX",
        EXPRESSIONS,
        (
            "CREATE TABLE t (id INT PRIMARY KEY, j JSON)",
            "CREATE UNIQUE INDEX many ON t ((CAST(j->'$[*].k' AS DECIMAL(9,2) ARRAY)))",
            """INSERT INTO t VALUES (1, '[{"k": 1.5}, {"k": 2}]')""",
        ),
        "DELETE FROM t",
        """INSERT INTO t VALUES (2, '[{"k": 2.00}]')""",
        DUPLICATE,
    ),
    Trap(
        "value of an expression",
        EXPRESSIONS,
        (
            "CREATE TABLE t (id INT PRIMARY KEY, w VARCHAR(9) COLLATE utf8mb3_bin, UNIQUE KEY low ((LOWER(w))))",
            "INSERT INTO t VALUES (1, 'A')",
        ),
        "DELETE FROM t",
        "INSERT INTO t VALUES (2, 'a')",
        DUPLICATE,
    ),
    Trap(
        "value of a virtual column",
        SECONDARY,
        (
            "CREATE TABLE t (id INT PRIMARY KEY, n INT, g INT AS (n % 10) VIRTUAL, UNIQUE (g))",
            "INSERT INTO t (id, n) VALUES (1, 17)",
        ),
        "UPDATE t SET n = 18",
        "INSERT INTO t (id, n) VALUES (2, 27)",
        DUPLICATE,
    ),
    Trap(
        "key that is invisible",
        SECONDARY,
        (
            "CREATE TABLE t (id INT PRIMARY KEY, a INT, UNIQUE KEY a (a))",
            "ALTER TABLE t ALTER INDEX a INVISIBLE",
            "INSERT INTO t VALUES (1, 1)",
        ),
        "DELETE FROM t",
        "INSERT INTO t VALUES (2, 1)",
        DUPLICATE,
    ),
    Trap(
        "parent named behind a column",
        FOREIGN_KEYS,
        (_PARENT, "CREATE TABLE c (id INT PRIMARY KEY, p INT REFERENCES p (id))"),
        "INSERT INTO p VALUES (1)",
        "INSERT INTO c VALUES (1, 1)",
        NO_PARENT,
    ),
    Trap(
        "text that ignores a character",
        COLLATIONS,
        ("CREATE TABLE t (k VARCHAR(9) COLLATE utf8mb4_0900_ai_ci PRIMARY KEY)", "INSERT INTO t VALUES ('ab')"),
        "DELETE FROM t",
        "INSERT INTO t VALUES (CONCAT('a', CHAR(1), 'b'))",
        DUPLICATE,
    ),
    Trap(
        "text of several letters",
        COLLATIONS,
        (
            "CREATE TABLE t (k VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_as_ci PRIMARY KEY)",
            "INSERT INTO t VALUES ('æ')",
        ),
        "DELETE FROM t",
        "INSERT INTO t VALUES ('Æ')",
        DUPLICATE,
    ),
    Trap(
        "rows that a partition brings",
        PRIMARY,
        (
            "CREATE TABLE t (id INT PRIMARY KEY, a INT) PARTITION BY HASH (id) PARTITIONS 1",
            "CREATE TABLE other (id INT PRIMARY KEY, a INT)",
            "INSERT INTO other VALUES (1, 1)",
            "ALTER TABLE t EXCHANGE PARTITION p0 WITH TABLE other",
        ),
        "DELETE FROM t",
        "INSERT INTO t VALUES (1, 1)",
        DUPLICATE,
    ),
    Trap(
        "moment of another time zone",
        SECONDARY,
        (
            "CREATE TABLE t (id INT PRIMARY KEY, m TIMESTAMP(3) NULL, UNIQUE (m))",
            "INSERT INTO t VALUES (1, '2020-01-01 12:00:00')",
        ),
        "DELETE FROM t",
        "SET time_zone = '+05:00'; INSERT INTO t SELECT 2, CONVERT_TZ('2020-01-01 12:00:00', @@GLOBAL.time_zone, '+05:00')",
        DUPLICATE,
    ),
)
