"""Work for a MariaDB that a view for a new MySQL keeps: every type of column, character set, and definition that passes.

Each part says in which formats it has the same result on a MySQL; if a replica's column has another type than the source's (a UUID is
BINARY(16) there), rows pass and statements do not.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from deploy.servers import Server
from tests.support import workload
from tests.support.workload import FORMATS, session

DATABASE: Final = "maria"
_ROW: Final = ("ROW",)
_NO_STATEMENTS: Final = ("ROW", "MIXED")
_BOTH_ENGINES: Final = ("ROW",)
KEYS_LEFT_OUT: Final = tuple(f"{DATABASE}.hashed.{key}" for key in ("by_b", "by_t"))
"""Unique keys over BLOB and TEXT, which MySQL does not have."""


@dataclass(frozen=True, slots=True)
class Part:
    """Statements of one connection. `formats` are binlog formats; `since` is the first MariaDB that has it, as (11, 8)."""

    name: str
    statements: Sequence[str]
    formats: Sequence[str] = FORMATS
    since: tuple[int, int] = (10, 5)


def _values(table: str, *rows: str) -> list[str]:
    return [f"INSERT INTO {table} VALUES ({number}, {row})" for number, row in enumerate(rows, 1)]


def _changed(table: str, column: str) -> list[str]:
    """Return an update and a delete of rows of a table with a key `id`."""
    return [f"UPDATE {table} SET {column} = NULL WHERE id = 1", f"DELETE FROM {table} WHERE id = 2"]


_INTEGERS: Final = (
    "CREATE TABLE integers (id INT PRIMARY KEY, a TINYINT, b TINYINT UNSIGNED, c SMALLINT, d SMALLINT UNSIGNED, e MEDIUMINT,"
    " f MEDIUMINT UNSIGNED, g INT, h INT UNSIGNED, i BIGINT, j BIGINT UNSIGNED, k INT(7) ZEROFILL, l BOOL, m BIT(1),"
    " n BIT(13), o BIT(64), p YEAR)",
    "INSERT INTO integers VALUES (1, -128, 255, -32768, 65535, -8388608, 16777215, -2147483648, 4294967295,"
    " -9223372036854775808, 18446744073709551615, 42, TRUE, b'1', b'1010101010101', 0xFFFFFFFFFFFFFFFF, 2155)",
    "INSERT INTO integers VALUES (2, 127, 0, 32767, 0, 8388607, 0, 2147483647, 0, 9223372036854775807, 0, 0, FALSE, b'0',"
    " b'1', 1, 1901)",
    "INSERT INTO integers (id) VALUES (3)",
    "INSERT INTO integers (id, p) VALUES (4, 0)",
    "UPDATE integers SET a = a + 1, j = j - 1, o = 7 WHERE id = 1",
    "DELETE FROM integers WHERE id = 2",
)
_NUMBERS: Final = (
    "CREATE TABLE numbers (id INT PRIMARY KEY, a DECIMAL(65,30), b DECIMAL(20,6) UNSIGNED, c DECIMAL(5,0), d FLOAT, e DOUBLE,"
    " f FLOAT(7,3), g DOUBLE(20,10))",
    "INSERT INTO numbers VALUES (1, -12345678901234567890123456789012345.123456789012345678901234567891,"
    " 12345678901234.654321, -99999, 1.1754944e-38,"
    " 2.2250738585072014e-308, 1234.567, -1234567890.0123456789)",
    "INSERT INTO numbers VALUES (2, 0, 0, 0, 3.402823466e38, 1.7976931348623157e308, -0.001, 0.1), (3, 1e-30, 1e-6, 1, -0e0,"
    " -1.1e-9, 1, 1)",
    "INSERT INTO numbers (id, e) VALUES (4, 0.1 + 0.2e0), (5, NULL)",
    *_changed("numbers", "a"),
)
_TIMES: Final = (
    "SET time_zone = '+05:30', sql_mode = ''",
    "CREATE TABLE times (id INT PRIMARY KEY, a DATE, b TIME, c TIME(3), d TIME(6), e DATETIME, f DATETIME(1), g DATETIME(6),"
    " h TIMESTAMP NULL,"
    " i TIMESTAMP(4) NULL, j TIMESTAMP(6) NULL DEFAULT NULL ON UPDATE current_timestamp(6),"
    " k TIMESTAMP NOT NULL DEFAULT current_timestamp())",
    "INSERT INTO times VALUES (1, '1000-01-01', '-838:59:59', '-838:59:58.999', '12:13:14.000001', '1000-01-01 00:00:00',"
    " '9999-12-31 23:59:59.9',"
    " '2024-02-29 12:00:00.123456', '1970-01-02 00:00:01', '2038-01-18 03:14:07.9999', '2001-02-03 04:05:06.000007',"
    " '2020-02-02 02:02:02')",
    "INSERT INTO times VALUES (2, '0000-00-00', '00:00:00', '838:59:59.000', '-00:00:00.000001', '0000-00-00 00:00:00',"
    " '2024-00-00 00:00:00.0',"
    " '2023-11-00 10:11:12.5', NULL, NULL, NULL, 0)",
    "INSERT INTO times (id, a, e) VALUES (3, '2024-00-10', '2024-12-00 01:02:03'), (4, '9999-12-31', NULL)",
    "UPDATE times SET c = '01:02:03.456', j = '2011-11-11 11:11:11.111111' WHERE id = 1",
    "UPDATE times SET a = '2024-01-01' WHERE id = 3",
    "INSERT INTO times (id, g, d) VALUES (5, NOW(6), '00:00:00.9')",
)
_FRACTIONS: Final = (
    # A MySQL rounds; both are what the source's sql_mode says.
    "CREATE TABLE fractions (id INT PRIMARY KEY, a TIME, b DATETIME, c TIMESTAMP NULL, d TIME(2))",
    "INSERT INTO fractions VALUES (1, '10:00:00.9', '2024-01-01 23:59:59.9', '2024-01-01 23:59:59.9', '10:00:00.999')",
    "SET sql_mode = 'TIME_ROUND_FRACTIONAL'",
    "INSERT INTO fractions VALUES (2, '10:00:00.9', '2024-01-01 23:59:59.9', '2024-01-01 23:59:59.9', '10:00:00.999')",
)
_STRINGS: Final = (
    "SET NAMES utf8mb4",
    "CREATE TABLE strings (id INT PRIMARY KEY, a CHAR(10) CHARACTER SET latin1, b VARCHAR(300) CHARACTER SET utf8mb3,"
    " c VARCHAR(80) CHARACTER SET utf8mb4,"
    " d TEXT CHARACTER SET ucs2, e VARCHAR(30) CHARACTER SET utf16, f CHAR(12) CHARACTER SET utf32,"
    " g TEXT CHARACTER SET sjis, h VARCHAR(40) CHARACTER SET gbk,"
    " i VARCHAR(40) CHARACTER SET cp1251, j CHAR(20) CHARACTER SET big5, k VARCHAR(20) CHARACTER SET ujis, l VARCHAR(20)"
    " CHARACTER SET euckr,"
    " m VARCHAR(20) CHARACTER SET koi8r, n CHAR(20) CHARACTER SET latin2, o VARCHAR(20) CHARACTER SET ascii, p CHAR(255)"
    " CHARACTER SET utf8mb4)",
    "INSERT INTO strings VALUES (1, 'Grüße', REPEAT('ж', 300), '\U0001f40b €', 'ελ', 'x\U0001f433', 'ü', '日本', '中文',"
    " 'Привет', '中', '日本', '한국', 'Привет', 'Łódź', 'a', REPEAT('€', 255))",
    "INSERT INTO strings (id, a, c, p) VALUES (2, 'trailing', 'with blank ', 'a'), (3, '', '', '')",
    "INSERT INTO strings (id) VALUES (4)",
    "UPDATE strings SET b = 'ı', c = CONCAT(c, 'i'), h = NULL WHERE id = 1",
    "DELETE FROM strings WHERE id = 3",
)
_BYTES: Final = (
    "CREATE TABLE octets (id INT PRIMARY KEY, a BINARY(16), b VARBINARY(300), c TINYBLOB, d BLOB, e MEDIUMBLOB, f LONGBLOB,"
    " g TINYTEXT CHARACTER SET latin1,"
    " h MEDIUMTEXT CHARACTER SET utf8mb4, i LONGTEXT CHARACTER SET utf8mb3, j BINARY(0), k VARBINARY(5000))",
    "INSERT INTO octets VALUES (1, 0x00FF20, REPEAT(0x00, 300), 0x5C27, REPEAT('d', 70000 - 5000), REPEAT('e', 70000),"
    " 0x1A0D0A00, 'é', 'ß', 'ж', '', REPEAT('k', 5000))",
    "INSERT INTO octets (id, b, f) VALUES (2, '', ''), (3, NULL, REPEAT(0xFF, 200000))",
    "UPDATE octets SET f = CONCAT(f, 0x2000) WHERE id = 1",
    "DELETE FROM octets WHERE id = 2",
)
_SETS: Final = (
    "CREATE TABLE picks (id INT PRIMARY KEY, a ENUM('one','two','drei ß') CHARACTER SET utf8mb4, b SET('a','b','c','ü')"
    " CHARACTER SET utf8mb4, c ENUM('x') NOT NULL)",
    "INSERT INTO picks VALUES (1, 'drei ß', 'a,ü', 'x'), (2, 'one', '', 'x'), (3, NULL, NULL, 'x'), (4, 2, 15, 1)",
    "UPDATE picks SET a = 'two', b = 'c' WHERE id = 1",
    "DELETE FROM picks WHERE id = 2",
)
_SHAPES: Final = (
    "CREATE TABLE shapes (id INT PRIMARY KEY, a GEOMETRY, t VARCHAR(20) CHARACTER SET utf8mb4, b POINT NOT NULL, c POLYGON,"
    " d LINESTRING, e TEXT CHARACTER SET latin1,"
    " f GEOMETRYCOLLECTION, g MULTIPOINT, h MULTIPOLYGON, i MULTILINESTRING)",
    "INSERT INTO shapes VALUES (1, ST_GeomFromText('POINT(1 2)'), 'näh', POINT(3, 4),"
    " ST_GeomFromText('POLYGON((0 0,1 0,1 1,0 0))'), ST_GeomFromText('LINESTRING(0 0,5 5)'),"
    " 'é', ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 1))'), ST_GeomFromText('MULTIPOINT(1 1,2 2)'),"
    " ST_GeomFromText('MULTIPOLYGON(((0 0,1 0,1 1,0 0)))'),"
    " ST_GeomFromText('MULTILINESTRING((0 0,1 1),(2 2,3 3))'))",
    "INSERT INTO shapes (id, b) VALUES (2, POINT(-1.5, 1e-300))",
    "UPDATE shapes SET a = NULL, t = 'Ж' WHERE id = 1",
)
_PLACES: Final = (
    # In a statement a MySQL takes the first number for the latitude.
    "CREATE TABLE places (id INT PRIMARY KEY, a POINT, b GEOMETRY)",
    "INSERT INTO places VALUES (1, ST_GeomFromText('POINT(1 2)', 4326), ST_GeomFromText('LINESTRING(200 100,0 0)', 4326))",
    "INSERT INTO places VALUES (2, ST_GeomFromText('POINT(1 2)', 3857), NULL)",
    "UPDATE places SET b = a WHERE id = 1",
)
_JSON: Final = (
    "CREATE TABLE documents (id INT PRIMARY KEY, j JSON, k JSON NOT NULL DEFAULT '{}', t VARCHAR(9))",
    """INSERT INTO documents (id, j, t) VALUES (1, '{"a": 1, "b":[1,2.50],"a":2}', 'x'), (2, '-0', NULL), (3, NULL, 'y')""",
    """INSERT INTO documents (id, j, k) VALUES (4, '["ü \U0001f40b", 12345678901234567890123]', '[]')""",
    "UPDATE documents SET j = '1e400' WHERE id = 1",
    "DELETE FROM documents WHERE id = 2",
)
_ADDRESSES: Final = (
    "CREATE TABLE addresses (u UUID PRIMARY KEY, i INET6, f INET4, n INT, KEY (i))",
    "INSERT INTO addresses VALUES ('123e4567-e89b-12d3-a456-426655440000', 'fe80::1', '192.168.0.1', 1)",
    "INSERT INTO addresses VALUES ('f47ac10b-58cc-4372-a567-0e02b2c3d400', '::', '0.0.0.32', 2),"
    " ('00000000-0000-0000-0000-000000000020', '::ffff:1.2.3.4', NULL, 3)",
    "INSERT INTO addresses VALUES (UUID(), NULL, '255.255.255.0', 4)",
    "UPDATE addresses SET i = '2001:db8::2000', n = 5 WHERE u = '123e4567-e89b-12d3-a456-426655440000'",
    "DELETE FROM addresses WHERE n = 2",
)
_COMPRESSED: Final = (
    "CREATE TABLE packed (id INT PRIMARY KEY, a VARCHAR(200) COMPRESSED CHARACTER SET latin1, b TEXT COMPRESSED,"
    " c LONGBLOB COMPRESSED, d VARCHAR(300) COMPRESSED CHARACTER SET utf8mb4,"
    " e VARBINARY(255) COMPRESSED, f TINYTEXT COMPRESSED)",
    "INSERT INTO packed VALUES (1, REPEAT('a', 200), REPEAT('bc', 20000), REPEAT('d', 100000), REPEAT('ü', 300), REPEAT(0x00,"
    " 255), REPEAT('f', 255))",
    "INSERT INTO packed VALUES (2, '', '', '', '', '', ''), (3, NULL, 'short', NULL, 'x', 0x00, NULL)",
    "UPDATE packed SET b = 'now short', c = REPEAT('long', 1000) WHERE id = 1",
    "DELETE FROM packed WHERE id = 2",
)
_GENERATED: Final = (
    "CREATE TABLE generated_columns (id INT PRIMARY KEY, a INT, hidden INT INVISIBLE DEFAULT 7, v INT AS (a * 2) VIRTUAL,"
    " p INT AS (a + 1) PERSISTENT, s VARCHAR(20) AS (CONCAT('x', a)) STORED, KEY (p))",
    "INSERT INTO generated_columns (id, a) VALUES (1, 10), (2, 20), (3, NULL)",
    "INSERT INTO generated_columns (id, a, hidden) VALUES (4, 40, 8)",
    "UPDATE generated_columns SET a = 11 WHERE id = 1",
    "DELETE FROM generated_columns WHERE id = 2",
)
_DEFAULTS: Final = (
    "CREATE TABLE defaults (id INT PRIMARY KEY, a INT DEFAULT (1 + 2), b BLOB DEFAULT 'blob', c VARCHAR(40)"
    " DEFAULT concat('a', 'b'), d TEXT DEFAULT 'it''s', e DATETIME(3) DEFAULT current_timestamp(3),"
    " f DECIMAL(10,2) DEFAULT 1.5, g TIMESTAMP NOT NULL DEFAULT current_timestamp() ON UPDATE current_timestamp(),"
    " h INT DEFAULT -1, CHECK (a > 0), CONSTRAINT c CHECK (f > 1))",
    "INSERT INTO defaults (id) VALUES (1), (2)",
    "UPDATE defaults SET f = 2.5 WHERE id = 1",
)
_KEYLESS: Final = (
    "CREATE TABLE keyless (a INT, b VARCHAR(5), c DOUBLE)",
    "INSERT INTO keyless VALUES (1, 'a', 0.1), (1, 'a', 0.1), (2, NULL, NULL)",
    "UPDATE keyless SET b = 'q' WHERE a = 2",
    "DELETE FROM keyless WHERE a = 1",
)
_HASHED: Final = (
    "CREATE TABLE hashed (id INT PRIMARY KEY, b BLOB, t TEXT CHARACTER SET utf8mb4, n INT, UNIQUE KEY by_b (b),"
    " UNIQUE KEY by_t (t), KEY by_n (n))",
    "INSERT INTO hashed VALUES (1, 'a', 'ä', 1), (2, REPEAT('b', 5000), NULL, 2)",
    "UPDATE hashed SET t = 'ö' WHERE id = 1",
    "INSERT INTO hashed VALUES (3, 'a2', 'c', 3) ON DUPLICATE KEY UPDATE n = 9",
    "DELETE FROM hashed WHERE id = 2",
)
_VERSIONED: Final = (
    "CREATE TABLE versioned (id INT PRIMARY KEY, a INT, t VARCHAR(20)) WITH SYSTEM VERSIONING",
    "INSERT INTO versioned VALUES (1, 1, 'one'), (2, 2, 'two')",
    "UPDATE versioned SET a = 10 WHERE id = 1",
    "UPDATE versioned SET a = 11 WHERE id = 1",
    "DELETE FROM versioned WHERE id = 2",
    "CREATE TABLE versioned_by_name (id INT PRIMARY KEY, a INT, s TIMESTAMP(6) GENERATED ALWAYS AS ROW START, e TIMESTAMP(6)"
    " GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (s, e)) WITH SYSTEM VERSIONING",
    "INSERT INTO versioned_by_name (id, a) VALUES (1, 1)",
    "UPDATE versioned_by_name SET a = 2",
)
_SEQUENCES: Final = (
    "CREATE SEQUENCE numbered START WITH 100 INCREMENT BY 7 CACHE 5",
    "CREATE TABLE by_sequence (id BIGINT NOT NULL DEFAULT nextval(numbered) PRIMARY KEY, t VARCHAR(9))",
    "INSERT INTO by_sequence (t) VALUES ('a'), ('b'), ('c')",
    "BEGIN",
    "INSERT INTO by_sequence (t) VALUES ('d'), ('e'), ('f')",
    "INSERT INTO by_sequence VALUES (NEXTVAL(numbered), 'g')",
    "COMMIT",
    "DO SETVAL(numbered, 5000)",
    "ALTER SEQUENCE numbered INCREMENT BY 3",
    "INSERT INTO by_sequence (t) VALUES ('h')",
    "DROP SEQUENCE numbered",
)
_VECTORS: Final = (
    "CREATE TABLE vectors (id INT PRIMARY KEY, v VECTOR(3) NOT NULL, w VECTOR(1))",
    "INSERT INTO vectors VALUES (1, VEC_FromText('[1,2.5,-3e10]'), VEC_FromText('[0.1]')), (2, VEC_FromText('[0,0,0]'), NULL)",
    "UPDATE vectors SET v = VEC_FromText('[4,5,6]') WHERE id = 1",
    "DELETE FROM vectors WHERE id = 2",
)
_LATE_TIMES: Final = (
    "SET time_zone = '+00:00'",
    "CREATE TABLE late_times (id INT PRIMARY KEY, a TIMESTAMP NULL, b TIMESTAMP(6) NULL)",
    "INSERT INTO late_times VALUES (1, '2038-01-19 03:14:08', '2105-12-31 23:59:59.999999')",
    "UPDATE late_times SET a = '2100-01-01 00:00:00'",
)
_IMAGES: Final = (
    "CREATE TABLE images (id INT PRIMARY KEY, a VARCHAR(20), b BLOB, c INT)",
    "INSERT INTO images VALUES (1, 'x', 'blob', 1), (2, 'y', NULL, 2), (3, 'z', 'b', 3)",
    "SET binlog_row_image = MINIMAL",
    "UPDATE images SET a = 'xx' WHERE id = 1",
    "DELETE FROM images WHERE id = 2",
    "INSERT INTO images (id, c) VALUES (4, 4)",
    "SET binlog_row_image = NOBLOB",
    "UPDATE images SET c = 30 WHERE id = 3",
)
_NODUP: Final = (
    "CREATE TABLE images_once (id INT PRIMARY KEY, a VARCHAR(20), b BLOB)",
    "SET binlog_row_image = FULL_NODUP",
    "INSERT INTO images_once VALUES (1, 'x', 'blob'), (2, 'y', NULL)",
    "UPDATE images_once SET a = 'xx' WHERE id = 1",
    "DELETE FROM images_once WHERE id = 2",
)
_DEFINITIONS: Final = (
    "CREATE TABLE defined (a INT(11) NOT NULL PRIMARY KEY, b INT NULL) ENGINE=InnoDB",
    "INSERT INTO defined VALUES (1, 1), (2, 2), (3, NULL)",
    "ALTER TABLE defined ADD COLUMN c VARCHAR(20) NOT NULL DEFAULT 'new', ADD KEY by_b (b)",
    "ALTER TABLE defined ADD COLUMN IF NOT EXISTS c INT, ADD COLUMN IF NOT EXISTS d INT DEFAULT 5",
    "ALTER TABLE defined DROP COLUMN IF EXISTS never",
    "ALTER TABLE defined ADD INDEX IF NOT EXISTS by_b (b), ADD INDEX IF NOT EXISTS by_c (c)",
    "ALTER TABLE defined ADD COLUMN e INT, ALGORITHM=INSTANT, LOCK=NONE",
    "ALTER TABLE defined ADD KEY by_e (e), ALGORITHM=NOCOPY",
    "CREATE INDEX IF NOT EXISTS by_d ON defined (d)",
    "DROP INDEX IF EXISTS never ON defined",
    "DROP INDEX IF EXISTS by_d ON defined",
    "ALTER TABLE IF EXISTS never ADD COLUMN x INT",
    "UPDATE defined SET d = 6, c = 'ü' WHERE a = 2",
    "ALTER TABLE defined MODIFY COLUMN IF EXISTS d BIGINT, CHANGE COLUMN IF EXISTS never other INT",
    "CREATE TABLE renamed_before LIKE defined",
    "RENAME TABLE IF EXISTS renamed_before TO renamed_behind, never TO ever",
    "INSERT INTO renamed_behind SELECT * FROM defined ORDER BY a",
    "TRUNCATE TABLE renamed_behind",
    "CREATE OR REPLACE TABLE renamed_behind (n INT PRIMARY KEY, t TEXT)",
    "INSERT INTO renamed_behind VALUES (1, 'replaced')",
    "CREATE OR REPLACE TABLE made_by_replace (n INT PRIMARY KEY)",
    "CREATE TABLE IF NOT EXISTS made_by_replace (n INT PRIMARY KEY, other INT)",
    "INSERT INTO made_by_replace VALUES (1)",
    "CREATE TABLE dropped_one (a INT)",
    "DROP TABLE IF EXISTS dropped_one, never_there",
    "SET STATEMENT max_statement_time=0 FOR CREATE TABLE set_statement (n INT PRIMARY KEY) ENGINE=InnoDB PAGE_CHECKSUM=0",
    "ALTER TABLE set_statement WAIT 10 ADD COLUMN m INT",
    "INSERT INTO set_statement VALUES (1, 2)",
    "CREATE TABLE aria (n INT PRIMARY KEY, t TEXT) ENGINE=Aria TRANSACTIONAL=1 PAGE_CHECKSUM=1",
    "INSERT INTO aria VALUES (1, 'x')",
    "CREATE DATABASE IF NOT EXISTS maria_other COMMENT 'with a comment'",
    "DROP DATABASE maria_other",
    "CREATE TABLE partitioned (n INT PRIMARY KEY, y INT) PARTITION BY HASH (n) PARTITIONS 4",
    "INSERT INTO partitioned VALUES (1, 1), (2, 2), (3, 3)",
    "ALTER TABLE partitioned TRUNCATE PARTITION p1",
    "CREATE TABLE reserved (`of` INT PRIMARY KEY, rank INT, `groups` INT, lead INT, system INT, window VARCHAR(9))",
    "INSERT INTO reserved (`of`, rank, `groups`, lead, system, window) VALUES (1, 2, 3, 4, 5, 'six')",
    "UPDATE reserved SET rank = rank + 1, window = 'w' WHERE lead = 4",
)
_EXECUTABLE_COMMENTS: Final = (
    "CREATE TABLE commented (a INT PRIMARY KEY, /*M! b INT, */ c INT /*!100000 , d INT DEFAULT 4 */ /*!50701 , never INT */,"
    " f INT) /*!40101 ENGINE=InnoDB */",
    "INSERT INTO commented (a, c, d, f, b) VALUES (1, 3, 4, 6, 2)",
    "INSERT INTO commented SET a = 2, c = 33, f = 66 /*M!100100 , d = 44 */",
)
_PROGRAMS: Final = (
    "CREATE TABLE called (n INT PRIMARY KEY, t VARCHAR(20))",
    "CREATE PROCEDURE fill (IN first INT) BEGIN INSERT INTO called VALUES (first,"
    " 'called'); INSERT INTO called VALUES (first + 1, 'called'); END",
    "CALL fill(1)",
    "CREATE OR REPLACE PROCEDURE fill (IN first INT) INSERT INTO called VALUES (first, 'again')",
    "CALL fill(10)",
    "CREATE FUNCTION doubled (n INT) RETURNS INT DETERMINISTIC RETURN 2 * n",
    "INSERT INTO called VALUES (doubled(21), 'doubled')",
    "CREATE OR REPLACE TRIGGER up BEFORE INSERT ON called FOR EACH ROW SET NEW.t = CONCAT(NEW.t, '!')",
    "INSERT INTO called VALUES (50, 'triggered')",
    "CREATE OR REPLACE TRIGGER up BEFORE INSERT ON called FOR EACH ROW SET NEW.t = CONCAT(NEW.t, '?')",
    "INSERT INTO called VALUES (51, 'triggered')",
    "CREATE TRIGGER IF NOT EXISTS up BEFORE INSERT ON called FOR EACH ROW SET NEW.t = 'never'",
    "DROP TRIGGER up",
    "CREATE OR REPLACE VIEW seen AS SELECT n FROM called",
    "CREATE OR REPLACE VIEW seen AS SELECT n, t FROM called",
    "CREATE EVENT later ON SCHEDULE AT '2037-01-01 00:00:00' DO DELETE FROM called",
    "CREATE OR REPLACE EVENT later ON SCHEDULE AT '2037-02-01 00:00:00' DO DELETE FROM called",
    "DROP EVENT later",
    "DROP VIEW seen",
)
_ACCOUNTS: Final = (
    "CREATE USER somebody@localhost IDENTIFIED BY 'a word'",
    "GRANT SELECT ON *.* TO somebody@localhost",
    "CREATE OR REPLACE USER somebody@localhost IDENTIFIED VIA mysql_native_password USING PASSWORD('other')",
    "SET PASSWORD FOR somebody@localhost = PASSWORD('a third')",
    "CREATE ROLE reader",
    "GRANT reader TO somebody@localhost",
    "SET DEFAULT ROLE reader FOR somebody@localhost",
    "DROP ROLE reader",
    "RENAME USER somebody@localhost TO other@localhost",
    "DROP USER other@localhost",
)
_XA: Final = (
    "CREATE TABLE branches (id INT PRIMARY KEY, n INT)",
    *(
        statement
        for number, ends in enumerate((["COMMIT {} ONE PHASE"], ["PREPARE {}", "COMMIT {}"], ["PREPARE {}", "ROLLBACK {}"]))
        for statement in (
            f"XA START 'branch {number}', 'b', 7",
            f"INSERT INTO branches VALUES ({number}, {number})",
            f"XA END 'branch {number}', 'b', 7",
            *("XA " + end.format(f"'branch {number}', 'b', 7") for end in ends),
        )
    ),
)  # fmt: skip
_SELECTS: Final = (
    "CREATE TABLE chosen_from (id INT PRIMARY KEY, n INT, t VARCHAR(20))",
    "INSERT INTO chosen_from VALUES (1, 1, 'a'), (2, 2, 'ü'), (3, NULL, NULL)",
    "CREATE TABLE chosen (id INT NOT NULL PRIMARY KEY) ENGINE=InnoDB SELECT id, n, t FROM chosen_from ORDER BY id",
    "CREATE TABLE chosen_none (id INT NOT NULL PRIMARY KEY) ENGINE=InnoDB SELECT id FROM chosen_from WHERE id < 0",
    "INSERT INTO chosen VALUES (9, 9, 'more')",
    "CREATE OR REPLACE TABLE chosen (id INT NOT NULL PRIMARY KEY) ENGINE=InnoDB SELECT id, n FROM chosen_from ORDER BY id",
    "INSERT INTO chosen VALUES (10, 10)",
)
_TEMPORARY: Final = (
    "CREATE TEMPORARY TABLE passing (a INT PRIMARY KEY, b INT) ENGINE=InnoDB",
    "INSERT INTO passing VALUES (1, 10), (2, 20)",
    "CREATE TABLE from_passing (a INT PRIMARY KEY, b INT)",
    "INSERT INTO from_passing SELECT a, b FROM passing ORDER BY a",
    "BEGIN",
    "INSERT INTO from_passing VALUES (10, 10)",
    "CREATE TEMPORARY TABLE inside (a INT PRIMARY KEY) ENGINE=InnoDB",
    "INSERT INTO inside VALUES (1)",
    "DROP TEMPORARY TABLE inside",
    "COMMIT",
    "CREATE TEMPORARY TABLE left_behind (a INT PRIMARY KEY)",
)
_TWO_PHASES: Final = (
    "CREATE TABLE two_phases (id INT PRIMARY KEY, n INT)",
    "INSERT INTO two_phases VALUES (1, 1), (2, 1)",
    "SET binlog_alter_two_phase = ON",
    "ALTER TABLE two_phases ADD COLUMN m INT DEFAULT 3",
    "ALTER TABLE two_phases ADD KEY by_n (n)",
    "SET binlog_alter_two_phase = OFF",
    "INSERT INTO two_phases VALUES (3, 3, 3)",
)
_COLLATIONS: Final = (
    "SET NAMES utf8mb4",
    "CREATE DATABASE maria_words CHARACTER SET utf8mb3",
    "CREATE TABLE maria_words.inherited (t VARCHAR(20) PRIMARY KEY, u VARCHAR(20) CHARACTER SET utf8mb4 UNIQUE, v CHAR(9)"
    " COLLATE utf8mb4_bin, w VARCHAR(9) COLLATE utf8mb4_unicode_520_ci)",
    "INSERT INTO maria_words.inherited VALUES ('i', 'i', 'a', 'x'), ('ü', '\U0001f40b', 'A', 'X')",
    "CREATE TABLE words (id INT PRIMARY KEY, t VARCHAR(20) CHARACTER SET utf8mb4, u TEXT) DEFAULT CHARACTER SET latin1",
    "INSERT INTO words VALUES (1, 'ж', 'ü')",
    "SET NAMES latin1",
    "SET @v = _latin1 0xE4",
    "INSERT INTO words VALUES (2, @v, @v)",
)
_UCA1400: Final = (
    "CREATE TABLE uca (t VARCHAR(20) COLLATE utf8mb4_uca1400_ai_ci PRIMARY KEY, u VARCHAR(20) COLLATE utf8mb4_uca1400_as_cs,"
    " v VARCHAR(9) CHARACTER SET utf8mb3 COLLATE utf8mb3_uca1400_ai_ci)",
    "INSERT INTO uca VALUES ('i', 'i', 'ı'), ('\U0001f40b', 'İ', 'i'), ('ß', 'ß', NULL)",
)
_TIMESTAMPS: Final = (
    "SET explicit_defaults_for_timestamp = OFF",
    "CREATE TABLE implicit_stamps (id INT PRIMARY KEY, first TIMESTAMP, second TIMESTAMP)",
    "INSERT INTO implicit_stamps (id) VALUES (1)",
    "SET explicit_defaults_for_timestamp = ON",
    "CREATE TABLE explicit_stamps (id INT PRIMARY KEY, first TIMESTAMP, second TIMESTAMP)",
    "INSERT INTO explicit_stamps (id) VALUES (1)",
)
_MODES: Final = (
    "SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT'",
    """CREATE TABLE "quoted" ("a b" INT PRIMARY KEY, "c" VARCHAR(20) DEFAULT 'x\\')""",
    """INSERT INTO "quoted" ("a b") VALUES (1)""",
    """INSERT INTO "quoted" VALUES (2, 'a' || 'b\\n')""",
)
_ROW_MODES: Final = (
    # Logged as statements they are a named stop: MySQL has nothing like them.
    "CREATE TABLE modes (id INT PRIMARY KEY, a VARCHAR(9), b VARCHAR(9))",
    "SET sql_mode = 'EMPTY_STRING_IS_NULL'",
    "INSERT INTO modes VALUES (1, '', 'x')",
    "SET sql_mode = 'SIMULTANEOUS_ASSIGNMENT'",
    "UPDATE modes SET a = b, b = a",
)
_METADATA: Final = (
    "SET @before = @@GLOBAL.binlog_row_metadata",
    *(
        statement
        for kind in ("NO_LOG", "MINIMAL", "FULL")
        for statement in (
            f"SET GLOBAL binlog_row_metadata = {kind}",
            f"CREATE TABLE told_{kind.lower()} (id INT UNSIGNED PRIMARY KEY, g POINT, t VARCHAR(9) CHARACTER SET utf8mb4,"
            " e ENUM('ä') CHARACTER SET latin1, s SET('x','y'), j JSON, u TEXT CHARACTER SET ucs2)",
            f"INSERT INTO told_{kind.lower()} VALUES (1, POINT(1, 1), 'ж', 'ä', 'x,y', '[]', 'u')",
            f"UPDATE told_{kind.lower()} SET t = 'ü' WHERE id = 1",
        )
    ),
    "SET GLOBAL binlog_row_metadata = @before",
)
_COMPRESSED_EVENTS: Final = (
    "SET GLOBAL log_bin_compress = ON, GLOBAL log_bin_compress_min_len = 10",
    "CREATE TABLE squeezed (id INT PRIMARY KEY, t TEXT) /* a comment that makes it longer, and longer, and longer,"
    " and longer, and longer */",
    "INSERT INTO squeezed VALUES (1, REPEAT('a', 5000)), (2, REPEAT('b', 300))",
    "UPDATE squeezed SET t = REPEAT('c', 7000) WHERE id = 1",
    "DELETE FROM squeezed WHERE id = 2",
    "SET GLOBAL log_bin_compress = OFF",
)
_OLD_TIMES: Final = (
    "SET GLOBAL mysql56_temporal_format = OFF",
    "CREATE TABLE old_times (id INT PRIMARY KEY, a TIME, b DATETIME, c TIMESTAMP NULL)",
    "INSERT INTO old_times VALUES (1, '-838:59:59', '9999-12-31 23:59:59', '2024-01-01 00:00:00'), (2, '12:13:14',"
    " '0000-00-00 00:00:00', NULL)",
    "UPDATE old_times SET a = '00:00:01' WHERE id = 2",
    "SET GLOBAL mysql56_temporal_format = ON",
)
_SERVER_DROPS: Final = (
    "CREATE TABLE there (a INT)",
    # reports 1051, and drops what is there
    "DROP TABLE there, missing",
)

PARTS: Final = (
    Part("integers", _INTEGERS),
    Part("numbers", _NUMBERS),
    Part("times", _TIMES),
    Part("fractions of times", _FRACTIONS),
    Part("strings", _STRINGS),
    Part("bytes", _BYTES),
    Part("ENUM and SET", _SETS),
    Part("geometry", _SHAPES),
    Part("places on earth", _PLACES, _ROW),
    Part("JSON", _JSON),
    Part("UUID and INET", _ADDRESSES, _ROW, (10, 11)),
    Part("compressed columns", _COMPRESSED),
    Part("generated and invisible columns", _GENERATED),
    Part("defaults", _DEFAULTS),
    Part("a table without a key", _KEYLESS),
    Part("keys over BLOB", _HASHED, _ROW),
    Part("system versioning", _VERSIONED, _ROW),
    Part("sequences", _SEQUENCES, _NO_STATEMENTS),
    Part("vectors", _VECTORS, _ROW, (11, 8)),
    Part("times after 2038", _LATE_TIMES, _ROW, (11, 8)),
    Part("row images", _IMAGES),
    Part("row images without repetition", _NODUP, FORMATS, (11, 8)),
    Part("definitions", _DEFINITIONS),
    Part("executable comments", _EXECUTABLE_COMMENTS),
    Part("programs", _PROGRAMS),
    Part("accounts", _ACCOUNTS),
    Part("XA", _XA),
    Part("CREATE TABLE … SELECT", _SELECTS),
    Part("temporary tables", _TEMPORARY),
    Part("ALTER in two phases", _TWO_PHASES, FORMATS, (10, 11)),
    Part("collations", _COLLATIONS),
    Part("uca1400", _UCA1400, FORMATS, (11, 8)),
    Part("TIMESTAMP without attributes", _TIMESTAMPS),
    Part("sql_mode", _MODES),
    Part("modes of MariaDB alone", _ROW_MODES, _ROW),
    Part("row metadata", _METADATA),
    Part("compressed events", _COMPRESSED_EVENTS),
    Part("old temporal types", _OLD_TIMES),
    Part("a DROP that fails", _SERVER_DROPS),
)
STOPPED: Final = {
    "places on earth": "statement_differs_in_target",
    "UUID and INET": "statement_differs_in_target",
    "keys over BLOB": "statement_differs_in_target",
    "system versioning": "statement_differs_in_target",
    "vectors": "statement_not_in_target",
    "modes of MariaDB alone": "sql_mode_not_in_target",
}
"""Parts that stop a view by name if they are logged as statements."""
_ERRORS: Final = ("a DROP that fails",)


def kept_parts(server: Server, binlog_format: str) -> Iterator[Part]:
    """Yield those that this server has, and that a view keeps in this format."""
    version = tuple(map(int, server.version.split(".")[:2]))
    return (part for part in PARTS if binlog_format in part.formats and part.since <= version)


def run_part(server: Server, part: Part, binlog_format: str, database: str = DATABASE) -> None:
    """Run a part on its own connection. Raises: AssertionError with the statement that the server refused."""
    with session(server, binlog_format, database) as execute:
        for statement in part.statements:
            try:
                execute(statement)
            except Exception as error:
                if part.name not in _ERRORS:
                    raise AssertionError(f"{part.name}: {error} at {statement[:300]}") from error


def mariadb_workload(server: Server, binlog_format: str) -> tuple[str, ...]:
    """Run all parts in a recreated database, and what every source may write; return the databases that were written."""
    server.sql(f"CREATE DATABASE {DATABASE}")
    for number, part in enumerate(kept_parts(server, binlog_format)):
        run_part(server, part, binlog_format)
        if number % 10 == 9:
            server.sql("FLUSH BINARY LOGS")
    server.sql(f"SET GLOBAL binlog_format = {binlog_format}")
    workload.create_schema(server, binlog_format, workload.DATABASE)
    with session(server, binlog_format, workload.DATABASE) as execute:
        if binlog_format in _BOTH_ENGINES:
            workload.mixed_engine_transactions(execute)
        workload.load_data(server, execute)
        workload.schema_changes(execute)
        execute("FLUSH BINARY LOGS")
        workload.variables_and_random(execute)
        workload.auto_increment(execute)
        workload.big_row(execute, 3_000_000)
        workload.many_small_transactions(execute, 200)
    workload.temporary_tables(server, binlog_format, workload.DATABASE)
    return (DATABASE, "maria_words", workload.DATABASE)
