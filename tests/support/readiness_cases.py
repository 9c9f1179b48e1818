"""Statements, and what the audit `readiness` must report for each: for tests without a server, and with real ones."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Case:
    """A case. `checks` are names of the checks that must find it, except those of `to know`. `on_old` says that MySQL 5.6 accepts
    it."""

    statement: str
    checks: tuple[str, ...] = ()
    on_old: bool = True
    sql_mode: str = ""


SETUP: Final = (
    "CREATE TABLE t (a INT PRIMARY KEY, b INT, s VARCHAR(99)) ENGINE=InnoDB",
    "CREATE TABLE m (a INT PRIMARY KEY, b INT) ENGINE=MyISAM",
    "CREATE TABLE d (a INT AUTO_INCREMENT PRIMARY KEY, d DATE, ts TIMESTAMP NULL) ENGINE=InnoDB",
    "INSERT INTO t VALUES (1, 1, 'x'), (2, 2, 'y')",
)
_HASH: Final = "*6BB4837EB74329105EE4568DDA7DC67ED2CA2AD9"

STOPS: Final = (
    Case("CREATE TABLE s1 (a INT) TYPE=MyISAM", ("type_option",), on_old=False),
    Case("ALTER IGNORE TABLE m ADD UNIQUE KEY (a)", ("alter_ignore",)),
    Case("ALTER IGNORE TABLE m ADD INDEX (b)", ("alter_ignore_word",)),
    Case("CREATE TABLE s15 (a POINT NOT NULL PRIMARY KEY) ENGINE=MyISAM", ("spatial_keys",)),
    Case("SET PASSWORD FOR 'r1'@'localhost' = PASSWORD('x1')", ("set_password_function",), on_old=False),
    Case("GRANT SELECT ON *.* TO g1@localhost IDENTIFIED BY 'p'", ("grant_with_account_options",)),
    Case("GRANT SELECT ON *.* TO g1@localhost WITH MAX_QUERIES_PER_HOUR 5", ("grant_with_account_options",)),
    Case("GRANT SELECT ON *.* TO g1@localhost REQUIRE SSL", ("grant_with_account_options",)),
    Case(f"CREATE USER u2@localhost IDENTIFIED BY PASSWORD '{_HASH}'", ("identified_by_hash",)),
    Case(f"CREATE USER u3@localhost IDENTIFIED WITH mysql_native_password AS '{_HASH}'", ("authentication_plugin_gone",)),
    Case("CREATE USER u4@localhost IDENTIFIED WITH 'mysql_old_password'", ("authentication_plugin_gone",)),
    Case("INSERT INTO m SELECT SQL_CACHE a + 100, b FROM t", ("query_cache_hint",)),
    Case("CREATE PROCEDURE p1() SELECT * FROM t PROCEDURE ANALYSE()", ("procedure_analyse",)),
    Case("CREATE PROCEDURE p2() RESET QUERY CACHE", ("statement_gone_in_program",)),
    Case(f"CREATE TABLE s14 ({', '.join(f'c{n} CHAR(250)' for n in range(33))}) CHARSET latin1", ("row_size",)),
    Case("CREATE TABLE s3 SELECT b, COUNT(*) FROM t GROUP BY b DESC", ("group_by_order",)),
    Case("CREATE TABLE s4 (y YEAR(2))", ("year2",)),
    Case("CREATE TABLE s5 (a TIMESTAMP(14))", ("timestamp_width",), on_old=False),
    Case("CREATE TABLE s6 (a FLOAT AUTO_INCREMENT PRIMARY KEY)", ("float_auto_increment",)),
    Case("CREATE TABLE s7 (a INT) ENGINE=InnoDB ROW_FORMAT=FIXED", ("innodb_strict_mode",)),
    Case("CREATE TABLE s8 (a INT PRIMARY KEY) KEY_BLOCK_SIZE=32", ("innodb_strict_mode",)),
    Case("CREATE TABLE s9 (a INT NULL, b INT, PRIMARY KEY (b, a))", ("nullable_primary_key",)),
    Case("CREATE TABLE s10 (a INT) DATA DIRECTORY='/tmp/binlog-relay-readiness'", ("data_directory",), on_old=False),
    Case("CREATE TABLE s11 (a INT) ENGINE=MyISAM /*!50100 PARTITION BY HASH(a) PARTITIONS 2 */", ("partitioned_engine",)),
    Case("CREATE TABLE s12 (a INT) ENGINE=BDB", ("engine_unknown",), on_old=False, sql_mode="NO_ENGINE_SUBSTITUTION"),
    Case("INSERT INTO t VALUES (10, \\N, 'x')", ("null_escape",)),
    Case("INSERT INTO t VALUES (11, 1, PASSWORD('x'))", ("functions_gone",)),
    Case("INSERT INTO t VALUES (12, 1, ENCODE('x','y'))", ("functions_gone",)),
    Case("INSERT INTO t VALUES (24, 1, MD5('x'))", ("functions_gone",)),
    Case("INSERT INTO t VALUES (13, GLENGTH(LineFromText('LINESTRING(0 0,1 1)')), 'x')", ("functions_gone",)),
    Case("INSERT INTO t VALUES (14, X(PointFromText('POINT(1 1)')), 'x')", ("functions_gone",)),
    Case("UPDATE t SET b = AREA(GeomFromText('POLYGON((0 0,1 0,1 1,0 0))')) WHERE a = 1", ("functions_gone",)),
    Case("FLUSH QUERY CACHE", ("flush_gone",)),
    Case("FLUSH HOSTS", ("flush_gone",)),
    Case("SET ONE_SHOT CHARACTER_SET_CLIENT=8", ("set_one_shot",), on_old=False),
    Case("RENAME DATABASE a TO b", ("rename_database",), on_old=False),
    Case("ALTER DATABASE `#mysql50#a-b` UPGRADE DATA DIRECTORY NAME", ("rename_database",), on_old=False),
    Case("UPDATE mysql.user SET Password = 'x' WHERE User = 'none'", ("system_table_gone",), on_old=False),
    Case("INSERT INTO `mysql`.`user` (Host, User, Password) VALUES ('h', 'u', '')", ("system_table_gone",)),
    Case("DELETE FROM mysql.proc WHERE name = 'none'", ("system_table_gone",), on_old=False),
    Case("CREATE TABLE rank (a INT)", ("reserved_word",)),
    Case("CREATE TABLE s13 (a INT, groups INT, `rank` INT)", ("reserved_word",)),
    Case("INSERT INTO s13 (a, groups) VALUES (1, 2)", ("reserved_word",), on_old=False),
    Case("CREATE FUNCTION f1 RETURNS INTEGER SONAME 'none.so'", ("library_function",), on_old=False),
)  # fmt: skip
"""MySQL 9.7 stops at each of these. `on_old` is also False if the 5.6 of the tests refuses it, or does not log it."""

MAY_DIFFER: Final = (
    Case(f"SET PASSWORD FOR 'g1'@'localhost' = '{_HASH}'", ("set_password_hash",), on_old=False),
    Case("GRANT SELECT ON *.* TO 'root'@'localhost'", ("grant_to_account",)),
    Case("DELETE FROM mysql.db WHERE User = 'none'", ("system_table_changed",)),
    Case("CREATE TABLE o1 (a INT) ENGINE=TokuDB", ("engine_replaced",)),
    Case("CREATE TABLE o2 (d DATE NOT NULL DEFAULT '0000-00-00')", ("zero_date",)),
    Case("INSERT INTO d (d) VALUES ('2010-00-10')", ("zero_date",)),
)  # fmt: skip
"""MySQL 9.7 accepts each of these."""

UNSAFE: Final = (
    Case("UPDATE t SET b = b + 1 LIMIT 1", ("limit_without_order",)),
    Case("DELETE FROM t WHERE a = 99 LIMIT 1", ("limit_without_order",)),
    Case("INSERT INTO t SELECT a + 10, b, s FROM t LIMIT 1", ("limit_without_order",)),
    Case("INSERT INTO t VALUES (148, (SELECT b FROM (SELECT b FROM t LIMIT 1) x), '')", ("limit_without_order",)),
    Case("INSERT INTO d (ts) SELECT NULL FROM t", ("auto_increment_select",)),
    Case("CREATE TABLE n1 (a INT AUTO_INCREMENT PRIMARY KEY) SELECT b FROM t", ("auto_increment_select",)),
    *(
        Case(f"INSERT INTO t VALUES ({200 + number}, NULL, {call})", ("unsafe_function",))
        for number, call in enumerate((
            "UUID()", "UUID_SHORT()", "RAND()", "SYSDATE()", "USER()", "CURRENT_USER()", "CURRENT_USER", "SESSION_USER()",
            "SYSTEM_USER()", "VERSION()", "FOUND_ROWS()", "ROW_COUNT()", "LOAD_FILE('/none')", "GET_LOCK('x',0)",
            "RELEASE_LOCK('x')", "IS_FREE_LOCK('x')", "IS_USED_LOCK('x')", "SLEEP(0)", "RANDOM_BYTES(3)",
        )
        )
    ),
    Case("INSERT INTO t VALUES (300, @@server_id, '')", ("system_variable",)),
    Case("INSERT INTO t SELECT a, b, s FROM t x ON DUPLICATE KEY UPDATE b = 3", ("order_of_rows",)),
    Case("INSERT IGNORE INTO t SELECT a, b, s FROM t x", ("order_of_rows",)),
    Case("REPLACE INTO t SELECT a, b, s FROM t x", ("order_of_rows",)),
    Case("UPDATE IGNORE t SET b = 7 WHERE a = 1", ("order_of_rows",)),
    Case("CREATE TABLE n2 (a INT PRIMARY KEY) IGNORE SELECT a FROM t", ("order_of_rows",)),
    Case("CREATE TABLE n3 (a INT PRIMARY KEY) REPLACE SELECT a FROM t", ("order_of_rows",)),
    Case("INSERT INTO t SELECT 145, COUNT(*), '' FROM mysql.general_log", ("log_tables",)),
)  # fmt: skip
"""MySQL 5.6 warns of each of these, with 1592."""

NOT_WARNED: Final = (
    Case("INSERT INTO t SELECT a + 2000, b, s FROM t GROUP BY b ORDER BY a DESC", ("order_of_values",)),
    Case("INSERT INTO m SELECT a + 3000, @x := b FROM t WHERE a < 3", ("order_of_values",)),
    Case("UPDATE t SET s = (SELECT GROUP_CONCAT(b) FROM m) WHERE a = 1", ("order_of_values",)),
)
"""MySQL 5.6 warns of none of these, and their values depend on the order of rows."""

UNSAFE_TO_KNOW: Final = (
    "UPDATE t SET b = b + 1 ORDER BY a LIMIT 1",
    "DELETE FROM t WHERE a = 99 ORDER BY a LIMIT 1",
)
"""MySQL 5.6 warns of these too; the check `limit_with_order` is only `to know`."""

HARMLESS: Final = (
    "INSERT INTO t VALUES (400, 1, 'RAND() LIMIT 1'), (401, 2, '0000-00-0x')",
    "INSERT INTO t VALUES (402, 1, NOW()), (403, UNIX_TIMESTAMP(), CURDATE()), (404, 1, CURRENT_TIMESTAMP)",
    "INSERT INTO t VALUES (405, CONNECTION_ID(), DATABASE()), (406, LAST_INSERT_ID(), UTC_TIMESTAMP())",
    "INSERT INTO t VALUES (407, @x, @@pseudo_thread_id), (408, @@auto_increment_increment, @@timestamp)",
    "INSERT INTO t SELECT a + 1000, b, s FROM t WHERE a < 3",
    "INSERT IGNORE INTO t VALUES (1, 1, '')",
    "REPLACE INTO t VALUES (1, 1, '')",
    "DELETE FROM t WHERE a = 99 -- LIMIT 1",
    "UPDATE t x SET x.b = (SELECT MAX(y.a) FROM m y) WHERE x.a = 1",
    "INSERT INTO m (a, b) VALUES (500, 1)",
    "INSERT INTO m SELECT SQL_NO_CACHE a + 600, b FROM t WHERE a < 3",
    "CREATE TABLE h1 (y YEAR, z YEAR(4), x INT, area INT, KEY x(x), KEY (area)) ENGINE=InnoDB",
    "CREATE TABLE h2 (a INT NOT NULL AUTO_INCREMENT, f FLOAT DEFAULT NULL, PRIMARY KEY (a)) ENGINE=MyISAM ROW_FORMAT=FIXED",
    "CREATE TABLE h3 (a INT) PARTITION BY HASH(a) PARTITIONS 2",
    "CREATE TABLE h4 (`rank` INT COMMENT 'rank of groups', ranks INT, `system` INT)",
    "UPDATE h4 SET h4.rank = 1, ranks = 2 WHERE `h4`.rank IS NULL",
    "CREATE TABLE area (a INT PRIMARY KEY)",
    "INSERT INTO area(a) VALUES (1)",
    "ALTER TABLE h1 ADD COLUMN b INT, ADD UNIQUE (b)",
    "CREATE PROCEDURE hp(a INT) BEGIN DECLARE x INT DEFAULT 0; SET x = a; END",
    "CREATE FUNCTION hf() RETURNS INT DETERMINISTIC RETURN 1",
    "DROP FUNCTION hf",
    "CREATE TRIGGER htr BEFORE INSERT ON h1 FOR EACH ROW SET NEW.x = NEW.b",
    "DROP TABLE IF EXISTS h1, h3",
    "FLUSH TABLES",
)  # fmt: skip
"""MySQL 9.7 accepts each of these, 5.6 warns of none with 1592, and only checks of `to know` find anything."""
