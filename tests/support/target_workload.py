"""Statements for a MySQL 9.7 whose binlogs contain everything that can be made readable for an older replica."""

from typing import Final

DATABASE: Final = "d"
# Each list is a connection of its own, which begins with USE d.
EVERYTHING: Final[tuple[tuple[str, ...], ...]] = (
    ("CREATE DATABASE e CHARACTER SET latin1 /*!80016 DEFAULT ENCRYPTION='N' */", "DROP DATABASE e"),
    (
        "CREATE TABLE times (id INT PRIMARY KEY, a TIMESTAMP, b TIMESTAMP NOT NULL, c TIMESTAMP(3) DEFAULT CURRENT_TIMESTAMP(3),"
        " d TIMESTAMP NULL ON UPDATE CURRENT_TIMESTAMP, e TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP)",
        "INSERT INTO times (id, b) VALUES (1, NOW())",
        "UPDATE times SET id = 2",
        "ALTER TABLE times ADD COLUMN f TIMESTAMP, ADD COLUMN (g TIMESTAMP NOT NULL DEFAULT '2001-01-01', h INT),"
        " MODIFY a TIMESTAMP(2), CHANGE COLUMN c cc TIMESTAMP(6) NULL",
        "SET binlog_format = STATEMENT",
        "INSERT INTO times (id, b) VALUES (5, '2020-01-01')",
        "UPDATE times SET id = 6 WHERE id = 5",
    ),
    (
        "SET NAMES utf8mb4",
        "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a VARCHAR(40), tx TEXT, bl BLOB, dt DATETIME(6), tm TIME(3), y YEAR,"
        " de DECIMAL(20,5), f FLOAT, dd DOUBLE, bi BIT(12), en ENUM('x','ä'), se SET('p','q'), g GEOMETRY, KEY (a))"
        " DEFAULT CHARSET=utf8mb4",
        "INSERT INTO t (a, tx, bl, dt, tm, y, de, f, dd, bi, en, se, g) VALUES ('x', 'täxt 😀', x'00ff',"
        " '2020-02-02 02:02:02.123456', '-11:11:11.125', 2024, -1234.5, 1.5, 2.25, b'101', 'ä', 'p,q',"
        " ST_GeomFromText('POINT(1 2)')), (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
        "UPDATE t SET a = 'yy' WHERE id = 1",
        "DELETE FROM t WHERE id = 2",
        "SET binlog_row_image = MINIMAL",
        "INSERT INTO t (a) VALUES ('min')",
        "UPDATE t SET tx = 'z' WHERE a = 'min'",
        "DELETE FROM t WHERE a = 'min'",
        "SET binlog_row_image = NOBLOB",
        "INSERT INTO t (a) VALUES ('nob')",
        "UPDATE t SET a = 'nob2' WHERE a = 'nob'",
    ),
    (
        "SET binlog_format = STATEMENT",
        "SET @v = 'abc', @n = 5, @d = 1.5, @x = NULL",
        "INSERT INTO t (a, f, de, tx) VALUES (@v, @n, @d, @x)",
        "UPDATE t SET a = UPPER(a) WHERE a = 'abc'",
        "INSERT INTO t (a) SELECT CONCAT(a, '!') FROM t WHERE id = 1",
        "SET binlog_format = MIXED",
        "INSERT INTO t (a) VALUES (UUID())",
        "BEGIN",
        "INSERT INTO t (a) VALUES ('s1')",
        "SAVEPOINT sp",
        "INSERT INTO t (a) VALUES ('s2')",
        "ROLLBACK TO sp",
        "INSERT INTO t (a) VALUES (RAND())",
        "COMMIT",
    ),
    (
        "CREATE TABLE p (id INT PRIMARY KEY)",
        "CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE)",
        "CREATE TABLE cn (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE SET NULL ON UPDATE SET NULL)",
        "INSERT INTO p VALUES (1), (2), (3), (4)",
        "INSERT INTO c VALUES (1, 1), (2, 2), (3, 3)",
        "INSERT INTO cn VALUES (1, 1), (2, 2), (3, 3)",
        "DELETE FROM p WHERE id = 1",
        "UPDATE p SET id = 20 WHERE id = 2",
        "BEGIN",
        "DELETE FROM p WHERE id = 3",
        "INSERT INTO p VALUES (33)",
        "INSERT INTO c VALUES (33, 33)",
        "UPDATE p SET id = 34 WHERE id = 33",
        "COMMIT",
        "SET binlog_format = STATEMENT",
        "INSERT INTO p VALUES (50)",
        "INSERT INTO c VALUES (50, 50)",
        "DELETE FROM p WHERE id = 50",
    ),
    ("XA START 'x'", "INSERT INTO p VALUES (9)", "XA END 'x'", "XA COMMIT 'x' ONE PHASE"),
    (
        "CREATE TABLE pt (a INT, b VARCHAR(10)) PARTITION BY HASH(a) PARTITIONS 3",
        "INSERT INTO pt VALUES (1, 'a'), (2, 'b'), (3, 'c')",
        "UPDATE pt SET a = a + 1",
        "DELETE FROM pt WHERE a = 3",
    ),
    (
        "CREATE TABLE m (a INT) ENGINE=MyISAM",
        "INSERT INTO m VALUES (1), (2)",
        "RENAME TABLE m TO m9",
        "ALTER TABLE p ADD COLUMN z INT DEFAULT 5, ALGORITHM=INSTANT",
        "CREATE INDEX pz ON p (z)",
        "CREATE UNIQUE INDEX pu ON p (id, z)",
        "ALTER TABLE p DROP INDEX pz, ADD INDEX pzz (z ASC)",
    ),
    (
        "CREATE TABLE lat (a VARCHAR(10) CHARACTER SET latin1 COLLATE latin1_german2_ci,"
        " b CHAR(3) CHARACTER SET utf8mb3 COLLATE utf8mb3_bin, c VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci,"
        " d VARCHAR(9), e TEXT CHARACTER SET utf8mb4) COLLATE=utf8mb4_bin DEFAULT CHARSET=utf8mb4",
        "INSERT INTO lat VALUES ('ü', 'b', 'c', 'd', 'e')",
    ),
    (
        "CREATE VIEW v AS SELECT id, a FROM t",
        "CREATE TRIGGER tr BEFORE INSERT ON p FOR EACH ROW SET @q = 1",
        "CREATE PROCEDURE pr() SELECT 1",
        "CREATE FUNCTION fu() RETURNS INT DETERMINISTIC RETURN 1",
        "CREATE EVENT ev ON SCHEDULE EVERY 1 DAY DISABLE DO SELECT 1",
        "DROP VIEW v",
        "DROP EVENT ev",
    ),
    (
        "CREATE USER u@localhost IDENTIFIED BY 'x'",
        "GRANT SELECT ON d.* TO u@localhost",
        "ALTER USER u@localhost ACCOUNT LOCK",
        "CREATE ROLE r",
        "GRANT r TO u@localhost",
        "SET DEFAULT ROLE r TO u@localhost",
        "DROP USER u@localhost",
        "DROP ROLE r",
    ),
    ("ANALYZE TABLE p", "ANALYZE TABLE p UPDATE HISTOGRAM ON z", "OPTIMIZE TABLE p", "FLUSH TABLES"),
    (
        "SET binlog_transaction_compression = ON",
        "BEGIN",
        "INSERT INTO t (a) VALUES ('zip1'), ('zip2')",
        "UPDATE p SET z = 7",
        "COMMIT",
        "SET @v = 'zip4'",
        "SET binlog_format = STATEMENT",
        "BEGIN",
        "INSERT INTO t (a) VALUES ('zip3')",
        "INSERT INTO t (a) VALUES (@v)",
        "COMMIT",
    ),
    ("SET binlog_rows_query_log_events = ON", "INSERT INTO t (a) VALUES ('rq')"),
    (
        "SET sql_mode = 'ANSI,NO_BACKSLASH_ESCAPES'",
        """CREATE TABLE "quo" (a INT, "b c" VARCHAR(20) DEFAULT 'x\\', KEY "k" (a))""",
        'INSERT INTO "quo" (a) VALUES (1)',
        "SET sql_mode = DEFAULT",
        "CREATE TABLE /*!80000 IF NOT EXISTS */ vc (a INT /*!99999 x */) /*!50100 ENGINE=InnoDB */ /*!080016 COMMENT='six' */",
        "INSERT INTO vc VALUES (1)",
    ),
    (
        "SET binlog_format = STATEMENT",
        "CREATE TEMPORARY TABLE tmp (a INT)",
        "INSERT INTO tmp VALUES (1)",
        "INSERT INTO t (a) SELECT a FROM tmp",
        "DROP TEMPORARY TABLE tmp",
    ),
    (
        "CREATE TABLE nopk (a INT, b VARCHAR(5))",
        "INSERT INTO nopk VALUES (1, 'a'), (1, 'a'), (2, NULL)",
        "DELETE FROM nopk WHERE a = 1 LIMIT 1",
        "UPDATE nopk SET b = 'q'",
    ),
)
WITHOUT_GTIDS: Final[tuple[tuple[str, ...], ...]] = (
    (
        "CREATE TABLE s2 ENGINE=MyISAM SELECT id, a FROM t",
        "CREATE TABLE s SELECT * FROM t",
        "CREATE TABLE s3 (x INT) SELECT 5 AS x",
    ),
)
"""CREATE TABLE ... SELECT, for which the target has no transaction with one GTID."""
