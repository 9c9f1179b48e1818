"""Pairs of transactions that fail on a replica if they run together, each with the rule that keeps them apart.

Both touch a value in common, in a way that is easily overlooked. `first` comes before `second` at the source.
"""

from dataclasses import dataclass
from typing import Final

from tests.support.dependency_checker import (
    CASCADES,
    COLLATIONS,
    FOREIGN_KEYS,
    PREFIXES,
    PRIMARY,
    ROW_ORDER,
    ROWS_WITHOUT_KEYS,
    SECONDARY,
    STATEMENTS,
)

DUPLICATE, NO_PARENT, HAS_CHILD, NO_ROW, DIFFERENT, BAD_DOCUMENT = 1062, 1452, 1451, 1032, 0, 182


@dataclass(frozen=True, slots=True)
class Trap:
    """A trap. `setup` are statements before both. `second` may begin with settings, separated by semicolons. Without `rule` they run
    together.

    `error` is what the replica reports then (0: nothing, its tables differ). `keeps_order` says whether that happens with
    replica_preserve_commit_order = ON too: otherwise the second one is rolled back in time, when the first one meets its locks.
    """

    name: str
    rule: str
    setup: tuple[str, ...]
    first: str
    second: str
    error: int
    keeps_order: bool = True

    @property
    def database(self) -> str:
        """The database of its tables."""
        return "trap_" + self.name.replace(" ", "_")


def _text(name: str, collation: str, first: str, second: str) -> Trap:
    charset = collation.partition("_")[0]
    return Trap(
        name,
        COLLATIONS,
        (
            f"CREATE TABLE t (k VARCHAR(9) CHARACTER SET {charset} COLLATE {collation} PRIMARY KEY)",
            f"INSERT INTO t VALUES ('{first}')",
        ),
        "DELETE FROM t",
        f"INSERT INTO t VALUES ('{second}')",
        DUPLICATE,
    )


def _renamed(name: str, collation: str, key: str) -> Trap:
    return Trap(
        name,
        PRIMARY,
        (
            f"CREATE TABLE t (k VARCHAR(9) CHARACTER SET utf8 COLLATE {collation} PRIMARY KEY, n INT)",
            "INSERT INTO t VALUES ('a', 1)",
        ),
        f"UPDATE t SET k = '{key}'",
        "UPDATE t SET n = 2",
        NO_ROW,
    )


_PARENT: Final = "CREATE TABLE p (id INT PRIMARY KEY, u INT, UNIQUE (u))"
_CASCADE: Final = "FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE"
_WORD: Final = "VARCHAR(9) CHARACTER SET utf8 COLLATE utf8_general_ci"
_MANY: Final = "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, c INT, UNIQUE (a), UNIQUE (b, c))"

TRAPS: Final = (
    Trap(
        "row",
        SECONDARY,
        (_MANY, "INSERT INTO t VALUES (1, 1, 1, 1)"),
        "UPDATE t SET a = 9 WHERE id = 1",
        "INSERT INTO t VALUES (2, 1, 2, 2)",
        DUPLICATE,
    ),
    _renamed("row with another key", "utf8_bin", "b"),
    _renamed("row with another Roman key", "utf8_roman_ci", "b"),
    _renamed("row with another key of German letters", "utf8_general_ci", "ö"),
    Trap(
        "key behind an empty comment",
        SECONDARY,
        (
            "CREATE TABLE t (id INT PRIMARY KEY, a INT)",
            "/*! */ ALTER TABLE t ADD UNIQUE (a)",
            "INSERT INTO t VALUES (1, 1)",
        ),
        "DELETE FROM t",
        "INSERT INTO t VALUES (2, 1)",
        DUPLICATE,
    ),
    Trap(
        "key of several columns",
        SECONDARY,
        (_MANY, "INSERT INTO t VALUES (1, 1, 1, 1)"),
        "UPDATE t SET b = NULL WHERE id = 1",
        "INSERT INTO t VALUES (2, 2, 1, 1)",
        DUPLICATE,
    ),
    Trap(
        "prefix",
        PREFIXES,
        ("CREATE TABLE t (id INT PRIMARY KEY, w VARCHAR(9), UNIQUE (w(2)))", "INSERT INTO t VALUES (1, 'abc')"),
        "DELETE FROM t",
        "INSERT INTO t VALUES (2, 'abd')",
        DUPLICATE,
    ),
    Trap(
        "zero",
        COLLATIONS,
        ("CREATE TABLE t (d DOUBLE PRIMARY KEY)", "INSERT INTO t VALUES (0e0)"),
        "DELETE FROM t",
        "INSERT INTO t VALUES (-0e0)",
        DUPLICATE,
    ),
    Trap(
        "row without key",
        ROWS_WITHOUT_KEYS,
        ("CREATE TABLE t (a INT, b INT)",),
        "INSERT INTO t VALUES (1, 1)",
        "DELETE FROM t WHERE a = 1",
        NO_ROW,
    ),
    Trap(
        "row with NULL in its key",
        ROWS_WITHOUT_KEYS,
        ("CREATE TABLE t (a INT NULL, b INT, UNIQUE (a))",),
        "INSERT INTO t VALUES (NULL, 1)",
        "UPDATE t SET b = 2",
        NO_ROW,
    ),
    _text("case", "utf8_general_ci", "a0", "A0"),
    _text("accent", "latin1_swedish_ci", "y", "ü"),
    _text("ligature", "utf8_unicode_ci", "ß", "ss"),
    _text("space", "utf8_bin", "a", "a "),
    _text("roman", "utf8_roman_ci", "iu", "jv"),
    _text("lithuanian", "utf8_lithuanian_ci", "i", "y"),
    _text("hungarian", "utf8_hungarian_ci", "ö", "Ő"),
    Trap(
        "parent",
        FOREIGN_KEYS,
        (_PARENT, "CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id))"),
        "INSERT INTO p VALUES (1, 1)",
        "INSERT INTO c VALUES (1, 1)",
        NO_PARENT,
    ),
    Trap(
        "child",
        FOREIGN_KEYS,
        (
            _PARENT,
            "CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (u))",
            "INSERT INTO p VALUES (1, 7)",
            "INSERT INTO c VALUES (5, 7)",
        ),
        "DELETE FROM c",
        "UPDATE p SET u = 8 WHERE id = 1",
        HAS_CHILD,
    ),
    Trap(
        "itself",
        FOREIGN_KEYS,
        ("CREATE TABLE t (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES t (id))",),
        "INSERT INTO t VALUES (1, NULL)",
        "INSERT INTO t VALUES (2, 1)",
        NO_PARENT,
    ),
    Trap(
        "text that is named",
        FOREIGN_KEYS,
        (
            "CREATE TABLE p (code VARCHAR(9) CHARACTER SET utf8 COLLATE utf8_general_ci PRIMARY KEY)",
            "CREATE TABLE c (id INT PRIMARY KEY, p VARCHAR(9) CHARACTER SET utf8 COLLATE utf8_general_ci,"
            " FOREIGN KEY (p) REFERENCES p (code))",
        ),
        "INSERT INTO p VALUES ('ab')",
        "INSERT INTO c VALUES (1, 'AB ')",
        NO_PARENT,
    ),
    Trap(
        "parent by a key that is not unique",
        FOREIGN_KEYS,
        (
            "CREATE TABLE p (id INT PRIMARY KEY, u INT, KEY (u))",
            "CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (u))",
        ),
        "INSERT INTO p VALUES (1, 7)",
        "INSERT INTO c VALUES (1, 7)",
        NO_PARENT,
    ),
    Trap(
        "key freed by a cascade",
        CASCADES,
        (
            _PARENT,
            f"CREATE TABLE c (id INT PRIMARY KEY, p INT, k INT, UNIQUE (k), {_CASCADE})",
            "INSERT INTO p VALUES (1, 1), (2, 2)",
            "INSERT INTO c VALUES (5, 1, 50)",
        ),
        "DELETE FROM p WHERE id = 1",
        "INSERT INTO c VALUES (6, 2, 50)",
        DUPLICATE,
    ),
    Trap(
        "parent taken by a cascade",
        CASCADES,
        (
            _PARENT,
            f"CREATE TABLE c (id INT PRIMARY KEY, p INT, {_CASCADE})",
            "CREATE TABLE g (id INT PRIMARY KEY, c INT, FOREIGN KEY (c) REFERENCES c (id) ON DELETE CASCADE)",
            "INSERT INTO p VALUES (1, 1)",
            "INSERT INTO c VALUES (5, 1)",
        ),
        "INSERT INTO g VALUES (1, 5)",
        "DELETE FROM p WHERE id = 1",
        NO_PARENT,
        keeps_order=False,
    ),
    Trap(
        "row without key after a cascade",
        CASCADES,
        (
            _PARENT,
            "CREATE TABLE c (p INT, n INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE SET NULL)",
            "INSERT INTO p VALUES (1, 1)",
            "INSERT INTO c VALUES (1, 5)",
        ),
        "DELETE FROM p WHERE id = 1",
        "UPDATE c SET n = 6",
        NO_ROW,
    ),
    Trap(
        "value that a cascade writes otherwise",
        CASCADES,
        (
            f"CREATE TABLE p (k {_WORD} PRIMARY KEY)",
            f"CREATE TABLE c (k {_WORD} PRIMARY KEY, FOREIGN KEY (k) REFERENCES p (k) ON UPDATE CASCADE)",
            f"CREATE TABLE g (id INT PRIMARY KEY, k {_WORD}, n INT, FOREIGN KEY (k) REFERENCES c (k) ON UPDATE CASCADE)",
            "INSERT INTO p VALUES ('a')",
            "INSERT INTO c VALUES ('a')",
            "INSERT INTO g VALUES (1, 'a', 1)",
        ),
        "UPDATE g SET n = 2",
        "UPDATE p SET k = 'A'",
        DIFFERENT,
        keeps_order=False,
    ),
    Trap(
        "number of a document",
        ROW_ORDER,
        ("CREATE TABLE t (FTS_DOC_ID BIGINT UNSIGNED NOT NULL PRIMARY KEY, w VARCHAR(9), FULLTEXT (w))",),
        "INSERT INTO t VALUES (5, 'five')",
        "INSERT INTO t VALUES (6, 'six')",
        BAD_DOCUMENT,
        keeps_order=False,
    ),
    Trap(
        "statement",
        STATEMENTS,
        ("CREATE TABLE t (id INT PRIMARY KEY)",),
        "INSERT INTO t VALUES (1)",
        "TRUNCATE TABLE t",
        DIFFERENT,
        keeps_order=False,
    ),
    Trap(
        "rows of a statement",
        STATEMENTS,
        ("CREATE TABLE t (id INT PRIMARY KEY, n INT)",),
        "INSERT INTO t VALUES (1, 1)",
        "SET binlog_format = STATEMENT; UPDATE t SET n = n + 1",
        DIFFERENT,
        keeps_order=False,
    ),
)

APART: Final = Trap(
    "apart", "", ("CREATE TABLE t (id INT PRIMARY KEY)",), "INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (2)", 0
)
"""Return a pair that is no trap: they have nothing in common."""
