"""Text made of what lexers may read otherwise than servers: quotations, comments, numbers, introducers, marks side by side."""

import random
from typing import Final

_CONTENTS: Final = (
    "", "a", "it''s", 'x""y', "``", "\\\\", "\\'", '\\"', "\\", "\\n", "\\%", "a\nb", "--", "-- c", "#", "/*", "*/", "/*!", ";",
    "é", "漢", "\t", "%", "0", "a b", "\\0", "'", '"', "`", "\\\\'", "C:\\", "\\`", "\r", "/* x */",
)  # fmt: skip
_COMMENTS: Final = (
    "/* c */", "/**/", "/*c*/", "/* ' */", '/* " */', "/* ` */", "/* -- */", "/* # */\n", "/*/ */", "/***/", "-- c\n", "--\n",
    "--\tc\n", "-- '\n", "# c\n", "#\n", "# it's\n", "--c\n", "--1\n", "-- /*\n", "/*+ NO_INDEX(t) */", "/* /* */", "/* a\nb */",
    "--\x01c\n", "#c\r\n", "-- c\r\n",
)  # fmt: skip
_FOR_SERVERS: Final = (
    "/*!50000 {} */", "/*!99999 {} */", "/*! {} */", "/*!{} */", "/*M! {} */", "/*M!100100 {} */", "/*M!120000 {} */",
    "/*!100100 {} */", "/*!50700 {} */", "/*!80000 {} */", "/*!090000 {} */", "/*!0 {} */", "/*!5000 {} */", "/*!500001 {} */",
    "/*!50000{} */", "/*m! {} */", "/*!40101 /*!50000 {} */ */", "/*!99999 /* {} */ */", "/*!40101 {} /* c */ */",
    "/*!50100 {}*/", "/*!999999 {} */", "/*!1000001 {} */", "/*!!50000 {} */", "/* !50000 {} */", "/*!\n50000 {} */",
)  # fmt: skip
_NUMBERS: Final = (
    "1", "0", "007", "1.5", ".5", "5.", "1e3", "1e-3", "1E+3", "1.e3", "1e", "1e+", "0x1F", "0X1F", "0xg", "0x", "x'1F'", "X'1f'",
    "x'1'", "b'01'", "B'01'", "b'2'", "0b01", "0B01", "0b2", "1a", "1e5a", "1_000", "0x1Fg", "12345678901234567890123", "1..2",
    "1.2.3", "-1", "+1", "1-1", "--1", "1.e", "9e9e9", "0b", "1$", "1é",
)  # fmt: skip
_WORDS: Final = (
    "SELECT", "FROM", "t", "a", "WHERE", "e5", "t1", "$a", "a$b", "_x", "é", "漢字", "1a", "N", "X", "B", "n", "x", "NULL", "t.1a",
    "t.e5", "d.t", "VALUES", "INTO", "1t", "DIV", "INTERVAL", "RENAME", "table", "Add", "\\N", "a.5", "t.`b`", "_", "$", "$1",
    "a\u00a0b",
)  # fmt: skip
_INTRODUCERS: Final = (
    "_utf8",
    "_latin1 ",
    "_binary",
    "N",
    "n",
    "_utf8mb4 ",
    "_utf8 x",
    "_latin1 0x",
    "x",
    "X",
    "b",
    "B",
    "_nosuch",
    "DATE",
    "TIMESTAMP",
)
_SYMBOLS: Final = (
    "(", ")", ",", ";", ".", "=", ":=", "<=>", "<>", "!=", "->", "->>", "@", "@@", "*", "/", "-", "+", "||", "&&", "?", "{", "}",
    "[", "]", "\\", "!", "~", "^", "%", ":", "*/", "'", '"', "`", "--", "/*", "\x00", "\x1a",
)  # fmt: skip
_VARIABLES: Final = (
    "@a", "@`a b`", "@'a'", '@"a"', "@@a", "@@global.a", "@@GLOBAL . a", "@a.b", "@$", "@", "@@`a`", "@@session.`a`", "@ a",
    "u@h", "'u'@'h'", "u@'%'", "@é", "@@x.y",
)  # fmt: skip
_BLANKS: Final = (" ", " ", " ", "\n", "\t", "", "", "\r\n", "  ", "\x0b", "\x0c", "\u00a0")


class RandomSql:
    """Texts by a seed, the same in every process."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(f"sql {seed}")

    def text(self, pieces: int) -> str:
        """So many pieces, and what stands between them."""
        chance = self._chance
        return "".join(self.piece() + chance.choice(_BLANKS) for _ in range(chance.randint(1, pieces)))

    def piece(self, depth: int = 0) -> str:
        """One piece. Its quotations end, but for one of some dozens."""
        chance = self._chance
        draw = chance.random()
        if draw < 0.2:
            return self.quotation()
        if draw < 0.33:
            return chance.choice(_COMMENTS)
        if draw < 0.45 and depth < 2:
            inside = " ".join(self.piece(depth + 1) for _ in range(chance.randint(0, 3)))
            return chance.choice(_FOR_SERVERS).format(inside)
        if draw < 0.6:
            return chance.choice(_NUMBERS)
        if draw < 0.65:
            return chance.choice(_INTRODUCERS) + self.quotation()
        if draw < 0.72:
            return chance.choice(_VARIABLES)
        if draw < 0.8:
            return chance.choice(_SYMBOLS)
        return chance.choice(_WORDS)

    def quotation(self) -> str:
        """A string or a quoted name."""
        mark = self._chance.choice("''\"`")
        inside = "".join(self._chance.choices(_CONTENTS, k=self._chance.randint(0, 3)))
        if self._chance.random() < 0.7:  # else it ends where it ends
            inside = inside.replace(mark, mark * 2) if "\\" not in inside else inside.replace(mark, "")
        return mark + inside + mark


_TABLES: Final = ("t", "`t`", "shop.t", "`shop`.`t x`", '"t"', "T", "crm . t", "`a``b`", "tüb", "t1")
_COLUMNS: Final = ("a", "`b`", "id", "`c d`", "größe", '"e"', "rank", "`key`", "n", "s")
_TYPES: Final = (
    "INT", "int(10) unsigned", "BIGINT ZEROFILL", "VARCHAR(20)", "CHAR(3) BINARY", "varchar(9) character set latin1", "TEXT",
    "MEDIUMTEXT COLLATE utf8_bin", "DECIMAL(10,2)", "DOUBLE PRECISION", "FLOAT(7,3)", "TIMESTAMP", "timestamp(3) NULL",
    "DATETIME(6)", "DATE", "YEAR(4)", "TIME", "ENUM('x','y''z')", "SET('a','b')", "BIT(3)", "BLOB", "JSON", "GEOMETRY", "UUID",
    "INET6", "SERIAL", "BOOL", "NATIONAL VARCHAR(5)", "VARCHAR(20) COMPRESSED", "VECTOR(3)", "XMLTYPE", "LONG VARCHAR",
    "INT SIGNED", "REAL", "CHAR BYTE",
)  # fmt: skip
_ENDS: Final = (
    "", "", "", " NOT NULL", " NULL", " DEFAULT 0", " DEFAULT 'a''b'", " DEFAULT NULL", " NOT NULL DEFAULT CURRENT_TIMESTAMP",
    " ON UPDATE CURRENT_TIMESTAMP", " AUTO_INCREMENT", " PRIMARY KEY", " UNIQUE", " COMMENT 'x, y'", " CHECK (a > 0)",
    " CONSTRAINT c CHECK (a <> '')", " REFERENCES p (id)", " REFERENCES p (id) ON DELETE CASCADE", " INVISIBLE",
    " GENERATED ALWAYS AS (1 + 1) VIRTUAL", " AS (a * 2) PERSISTENT", " DEFAULT (uuid())", " /*!50606 STORAGE DISK */",
    " /*!80023 INVISIBLE */", " /*M!100301 INVISIBLE */", " WITHOUT SYSTEM VERSIONING", " SRID 4326", " COLUMN_FORMAT FIXED",
    " DEFAULT x'41'", " DEFAULT b'1'", " DEFAULT -1.5", " CHECK (a > 0) NOT ENFORCED", " DEFAULT _latin1'x'", " VISIBLE",
    " DEFAULT now() ON UPDATE now()",
)  # fmt: skip
_KEYS: Final = (
    "PRIMARY KEY (id)", "KEY k (a)", "UNIQUE KEY u (a, b)", "INDEX (`a`(10) DESC)", "FULLTEXT KEY f (s)", "SPATIAL INDEX g (a)",
    "KEY x ((a + 1))", "CONSTRAINT f1 FOREIGN KEY (a) REFERENCES p (id)",
    "FOREIGN KEY fk (a) REFERENCES shop.p (id) ON DELETE SET NULL ON UPDATE CASCADE",
    "FOREIGN KEY (a) REFERENCES p (id) MATCH FULL ON DELETE CASCADE", "CHECK (a > b)", "CONSTRAINT ck CHECK ((a))",
    "UNIQUE (a) USING BTREE", "KEY (a) COMMENT 'k'", "CONSTRAINT PRIMARY KEY (id)", "PERIOD FOR SYSTEM_TIME (s, e)",
    "KEY k (a) INVISIBLE", "UNIQUE KEY u (a) IGNORED", "VECTOR INDEX v (a)",
    "/*!50000 CONSTRAINT f2 */ FOREIGN KEY (a) /*!50000 REFERENCES p (id) */",
)  # fmt: skip
_OPTIONS: Final = (
    "ENGINE=InnoDB", "ENGINE MyISAM", "engine = `blackhole`", "TYPE=HEAP", "ENGINE='Aria'", "DEFAULT CHARSET=utf8",
    "CHARACTER SET latin1 COLLATE latin1_bin", "COLLATE=utf8mb4_uca1400_ai_ci", "COMMENT='t; x'", "AUTO_INCREMENT=7",
    "ROW_FORMAT=FIXED", "KEY_BLOCK_SIZE=8", "WITH SYSTEM VERSIONING", "PAGE_COMPRESSED=1", "DATA DIRECTORY='/x'", "UNION=(t1,t2)",
    "STATS_PERSISTENT=1", "ENCRYPTION='N'", "PARTITION BY HASH (id) PARTITIONS 3", "CHECKSUM=1", "ENGINE=ROCKSDB",
    "PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10) ENGINE = MyISAM, PARTITION p1 VALUES LESS THAN MAXVALUE)",
    "TABLESPACE ts", "SEQUENCE=1", "/*!50100 PARTITION BY KEY (id) */", "START TRANSACTION", "SELECT 1 AS id",
    "AS SELECT * FROM p", "IGNORE SELECT a FROM p", "CONNECTION='mysql://u:p@h/d/t'",
)  # fmt: skip
_ACTIONS: Final = (
    "ADD COLUMN {c} {d}", "ADD {c} {d} FIRST", "ADD COLUMN IF NOT EXISTS {c} {d} AFTER a", "ADD ({c} {d}, n2 INT)",
    "DROP COLUMN {c}", "DROP {c}", "DROP COLUMN IF EXISTS {c}", "MODIFY {c} {d}", "CHANGE {c} z {d}",
    "CHANGE COLUMN IF EXISTS {c} {c} {d}", "RENAME COLUMN {c} TO z", "RENAME TO {t}", "RENAME AS {t}", "RENAME INDEX k TO k2",
    "ADD {k}", "DROP INDEX k", "DROP PRIMARY KEY", "DROP FOREIGN KEY f1", "DROP CONSTRAINT c", "DROP CHECK c",
    "ALTER {c} SET DEFAULT 5", "ALTER COLUMN {c} DROP DEFAULT", "ALTER INDEX k INVISIBLE", "CONVERT TO CHARACTER SET utf8mb4",
    "ORDER BY {c}", "ENGINE=InnoDB", "ENGINE=MyISAM", "DISABLE KEYS", "FORCE", "ALGORITHM=INPLACE", "LOCK=NONE",
    "ADD PARTITION (PARTITION p9 VALUES LESS THAN (90))", "DROP PARTITION p0", "TRUNCATE PARTITION p0",
    "EXCHANGE PARTITION p0 WITH TABLE {t}", "REMOVE PARTITIONING", "DISCARD TABLESPACE", "ALTER CHECK c NOT ENFORCED",
    "DROP SYSTEM VERSIONING", "ADD SYSTEM VERSIONING", "COMMENT='x'", "DEFAULT CHARACTER SET latin2",
    "ADD PERIOD FOR SYSTEM_TIME (a, b)", "SET DEFAULT", "ALTER COLUMN {c} SET INVISIBLE", "COALESCE PARTITION 2",
    "REORGANIZE PARTITION p0 INTO (PARTITION p1 VALUES LESS THAN (5) ENGINE=InnoDB)", "CONVERT PARTITION p0 TO TABLE {t}",
)  # fmt: skip
_CHANGES: Final = (
    "INSERT INTO {t} VALUES (1, 'a')", "INSERT INTO {t} ({c}) VALUES ({v}), ({v})", "INSERT IGNORE {t} SET {c} = {v}",
    "REPLACE INTO {t} VALUES ({v})", "INSERT INTO {t} SELECT * FROM {t2}",
    "INSERT INTO {t} ({c}) SELECT {c} FROM {t2} ORDER BY {c} LIMIT 5", "REPLACE DELAYED INTO {t} SELECT 1",
    "INSERT INTO {t} VALUES ({v}) ON DUPLICATE KEY UPDATE {c} = VALUES({c})", "INSERT INTO {t} VALUES ({v}) RETURNING id",
    "INSERT INTO {t} TABLE {t2}", "UPDATE {t} SET {c} = {v} WHERE id = 1", "UPDATE {t} SET {c} = {v} LIMIT 3",
    "UPDATE {t} SET {c} = {v} ORDER BY id LIMIT 3", "UPDATE {t}, {t2} SET {c} = {v}",
    "UPDATE {t} AS x JOIN {t2} y ON x.id = y.id SET x.a = y.a", "UPDATE LOW_PRIORITY IGNORE {t} SET {c} = {c} + 1",
    "DELETE FROM {t}", "DELETE FROM {t} LIMIT 1", "DELETE FROM {t} WHERE {c} = {v} ORDER BY id LIMIT 2",
    "DELETE {t} FROM {t} JOIN {t2} USING (id)", "DELETE QUICK FROM {t}, {t2} USING {t} JOIN {t2}",
    "WITH x AS (SELECT 1) UPDATE {t} SET a = (SELECT * FROM x)",
    "WITH RECURSIVE x AS (SELECT 1) DELETE FROM {t} WHERE id IN (SELECT * FROM x)",
    "LOAD DATA INFILE 'f' INTO TABLE {t} FIELDS TERMINATED BY ','",
    "LOAD DATA LOCAL INFILE 'f' REPLACE INTO TABLE {t} (a, @b) SET c = @b", "TRUNCATE {t}", "TRUNCATE TABLE {t}", "CALL p({v})",
    "CALL shop.p()", "DO release_lock('x')", "INSERT INTO {t} VALUES (f({v}))", "UPDATE {t} SET {c} = (SELECT MAX(a) FROM {t2})",
    "(INSERT INTO {t} VALUES ({v}))", "INSERT INTO {t} VALUES (_utf8'x', x'41', N'n', 0x41, {v})",
    "DELETE FROM {t} WHERE MATCH (s) AGAINST ('x')", "INSERT INTO {t} SELECT * FROM {t2} GROUP BY a",
    "INSERT INTO {t} SELECT DISTINCT a, GROUP_CONCAT(b) FROM {t2}", "REPLACE {t} ({c}) VALUES (uuid())",
    "INSERT INTO {t} VALUES (@x := {v})", "UPDATE {t} SET a = @n := @n + 1",
    "INSERT INTO {t} VALUES (LAST_INSERT_ID(), NOW(), RAND(), {v})",
)  # fmt: skip
_OTHERS: Final = (
    "BEGIN", "begin", "COMMIT", "commit ", "ROLLBACK", "ROLLBACK TO s", "ROLLBACK WORK TO SAVEPOINT `s`", "SAVEPOINT s",
    "savepoint `a b`", "RELEASE SAVEPOINT s", "XA START 'a'", "XA BEGIN 'a','b',1", "XA END X'61',X'',1", "XA PREPARE 'a'",
    "XA COMMIT 'a'", "XA COMMIT 'a' ONE PHASE", "XA ROLLBACK X'61'", "XA RECOVER", "START TRANSACTION",
    "START TRANSACTION READ ONLY", "BEGIN WORK", "BEGIN NOT ATOMIC SELECT 1; END", "COMMIT AND CHAIN", "START SLAVE",
    "SET PASSWORD FOR u@h = 'x'", "GRANT ALL ON *.* TO u", "REVOKE SELECT ON t FROM u@h", "CREATE USER u IDENTIFIED BY 'p'",
    "ALTER USER u@h PASSWORD EXPIRE", "DROP USER IF EXISTS u", "CREATE ROLE r", "SET DEFAULT ROLE r", "SET ROLE r",
    "RENAME USER a TO b", "SET @x = 1", "SET sql_mode = ''", "SET NAMES utf8", "FLUSH PRIVILEGES", "FLUSH TABLES {t}",
    "ANALYZE TABLE {t}", "OPTIMIZE TABLE {t}", "REPAIR TABLE {t}", "CHECK TABLE {t}", "ANALYZE UPDATE {t} SET a = 1",
    "CREATE DATABASE d CHARACTER SET utf8", "CREATE DATABASE IF NOT EXISTS shop", "CREATE OR REPLACE DATABASE d",
    "ALTER DATABASE shop COLLATE latin1_bin", "DROP DATABASE IF EXISTS `shop`", "DROP SCHEMA d", "DROP TABLE {t}",
    "DROP TABLE IF EXISTS {t}, {t2}", "DROP TEMPORARY TABLE {t}", "DROP /*!40005 TEMPORARY */ TABLE IF EXISTS {t}",
    "DROP TABLE {t} /* generated by server */", "RENAME TABLE {t} TO {t2}", "RENAME TABLE {t} TO a, {t2} TO {t}, a TO {t2}",
    "RENAME TABLE IF EXISTS {t} TO {t2}", "CREATE INDEX i ON {t} ({c})", "CREATE UNIQUE INDEX IF NOT EXISTS i ON {t} ({c}(3))",
    "DROP INDEX i ON {t}", "CREATE VIEW v AS SELECT * FROM {t}",
    "CREATE OR REPLACE ALGORITHM=MERGE DEFINER=`u`@`h` SQL SECURITY INVOKER VIEW v AS SELECT 1", "DROP VIEW v",
    "CREATE DEFINER=`u`@`h` TRIGGER g BEFORE INSERT ON {t} FOR EACH ROW SET NEW.a = 1",
    "CREATE TRIGGER g AFTER DELETE ON {t} FOR EACH ROW DELETE FROM {t2} LIMIT 1",
    "CREATE TRIGGER g AFTER UPDATE ON {t} FOR EACH ROW BEGIN INSERT INTO {t2} VALUES (1); CALL p(); END",
    "DROP TRIGGER IF EXISTS g", "CREATE PROCEDURE p() UPDATE {t} SET a = 1",
    "CREATE FUNCTION f() RETURNS INT DETERMINISTIC RETURN 1", "CREATE AGGREGATE FUNCTION f RETURNS INT SONAME 'x.so'",
    "DROP FUNCTION f", "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO DELETE FROM {t}", "CREATE SEQUENCE q START WITH 5",
    "DROP SEQUENCE q", "CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'h')", "CREATE TEMPORARY TABLE {t} (a INT)",
    "CREATE TEMPORARY TABLE IF NOT EXISTS {t} LIKE {t2}", "CREATE TABLE {t} LIKE {t2}", "CREATE TABLE {t} (LIKE {t2})",
    "CREATE OR REPLACE TABLE {t} (a UUID)", "CREATE TABLE {t} SELECT * FROM {t2}", "CREATE TABLE {t} (a INT) AS SELECT 1 a",
    "CREATE TABLE {t} AS WITH x AS (SELECT 1) SELECT * FROM x", "CREATE TABLESPACE x ADD DATAFILE 'x'", "LOCK TABLES {t} WRITE",
    "UNLOCK TABLES", "USE shop", "PURGE BINARY LOGS TO 'x'", "INSTALL PLUGIN x SONAME 'y'", "SELECT * FROM {t} INTO OUTFILE 'x'",
    "SELECT f(1)", "CREATE PACKAGE x AS END",
)  # fmt: skip
_VALUES: Final = (
    "1",
    "'a'",
    "'it''s'",
    "'C:\\\\'",
    '"q"',
    "NULL",
    "-1.5e3",
    "0x41",
    "DEFAULT",
    "'\\''",
    "CONCAT('a', \"b\")",
    "'2000-00-00'",
    "@v",
    "1 + 1",
    "'a' COLLATE utf8_bin",
)
_GAPS: Final = (
    "",
    "",
    "",
    "",
    "",
    "",
    " /* c */ ",
    "\n",
    " -- c\n",
    " # c\n",
    "/*!40000 */ ",
    "/* a */ /* b */",
    "\t",
    "--c\n",
    "\u00a0",
)
_SPELLED: Final = (" ", " ", " ", " ", " ", " ", "  ", "\n", " /* x */ ", "\t", " -- c\n", " # it's\n", "/**/")


class RandomStatements:
    """Statements as applications and people write them, and as nobody does, by a seed."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(f"statements {seed}")
        self._sql = RandomSql(seed)

    def statement(self) -> str:
        """The next one."""
        chance = self._chance
        draw = chance.random()
        if draw < 0.28:
            made = self._create()
        elif draw < 0.55:
            made = self._alter()
        elif draw < 0.75:
            made = self._filled(chance.choice(_CHANGES))
        elif draw < 0.92:
            made = self._filled(chance.choice(_OTHERS))
        else:
            made = self._sql.text(12)
        return chance.choice(_GAPS) + self._spelled(made)

    def _spelled(self, text: str) -> str:
        """With other blanks between its words, in one of four."""
        if self._chance.random() > 0.25 or any(mark in text for mark in "'\"`/#"):
            return text
        words = text.split(" ")
        made = words[0]
        for word in words[1:]:
            made += self._chance.choice(_SPELLED) + self._chance.choice((word, word, word.lower(), word.upper()))
        return made

    def _filled(self, text: str) -> str:
        chance = self._chance
        for name, choices in (("{t}", _TABLES), ("{t2}", _TABLES), ("{c}", _COLUMNS), ("{v}", _VALUES), ("{k}", _KEYS)):
            while name in text:
                text = text.replace(name, chance.choice(choices), 1)
        while "{d}" in text:
            text = text.replace("{d}", self._column(), 1)
        return text

    def _column(self) -> str:
        return self._chance.choice(_TYPES) + "".join(self._chance.choices(_ENDS, k=self._chance.choice((0, 1, 1, 2))))

    def _create(self) -> str:
        chance = self._chance
        columns = [f"{chance.choice(_COLUMNS)} {self._column()}" for _ in range(chance.randint(1, 4))]
        elements = columns + chance.sample(_KEYS, chance.choice((0, 0, 1, 2)))
        options = chance.choice((" ", ", ")).join(chance.sample(_OPTIONS, chance.choice((0, 1, 1, 2))))
        words = chance.choice(
            ("CREATE TABLE", "CREATE TABLE", "CREATE TABLE IF NOT EXISTS", "CREATE TEMPORARY TABLE", "create table")
        )
        return f"{words} {chance.choice(_TABLES)} ({', '.join(elements)}) {options}"

    def _alter(self) -> str:
        chance = self._chance
        actions = ", ".join(self._filled(chance.choice(_ACTIONS)) for _ in range(chance.choice((1, 1, 1, 2, 3))))
        words = chance.choice(
            (
                "ALTER TABLE",
                "ALTER TABLE",
                "ALTER TABLE",
                "ALTER IGNORE TABLE",
                "ALTER ONLINE TABLE",
                "ALTER TABLE IF EXISTS",
                "alter table",
            )
        )
        return f"{words} {chance.choice(_TABLES)} {actions}"
