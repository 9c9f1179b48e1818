"""Statements that are cut or changed at random are read, or refused in the two ways that a judge expects."""

import random
import re
from collections.abc import Callable

import pytest

from protocol.errors import ProtocolError
from protocol.sql.expressions.readers.program_reader import ProgramReader
from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.statements.statement import StatementText
from tests.unit.sql.test_expressions import Known, body, read

STATEMENTS = (
    "INSERT IGNORE INTO t (id, s) SELECT x.*, IF(id = 1, (SELECT 1), 0) FROM (SELECT DISTINCT id, 'a' 'b' FROM t) x, u AS y GROUP BY 1",
    "INSERT INTO u VALUES (1, {d '2020-01-01'}), ROW(ADDDATE(NOW(), 5), DEFAULT) ON DUPLICATE KEY UPDATE n = VALUES(n) + 1",
    "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT c.n, COUNT(*) OVER (ORDER BY 1) FROM c LIMIT 5, 1",
    "UPDATE t JOIN u USING (id) SET t.s = CASE t.id WHEN 1 THEN INTERVAL(1, 2) ELSE -(@a := 5) END WHERE s NOT LIKE _utf8 X'41'",
    "DELETE FROM a, b USING t a LEFT JOIN u b ON (a.id, 1) IN ((1, 2)) WHERE NOT EXISTS (TABLE u) AND g->>'$.a' MEMBER OF ('[]')",
    "LOAD DATA INFILE 'x' INTO TABLE u CHARACTER SET utf8 FIELDS TERMINATED BY ',' (id, @x) SET n = TRIM(BOTH 'x' FROM @x)",
    "CREATE TABLE x (a INT) SELECT GROUP_CONCAT(DISTINCT s ORDER BY d DESC SEPARATOR ';'), CAST(s AS CHAR(5)) FROM t HAVING 1",
    "SET @a = EXTRACT(DAY_HOUR FROM d + INTERVAL 1 DAY), @b := MATCH (s, g) AGAINST ('x' IN BOOLEAN MODE) COLLATE utf8_bin",
    "FOR EACH ROW BEGIN DECLARE c CURSOR FOR SELECT id FROM u; DECLARE EXIT HANDLER FOR NOT FOUND SET @a = 1; IF NEW.id > 3 THEN "
    "SET NEW.s = OLD.s, NEW.",
    "FOR EACH ROW BEGIN l: WHILE 1 DO REPEAT CALL p(NEW.id, NEW.d); UNTIL 1 END REPEAT; END WHILE; CASE 1 WHEN 1 THEN DO 2; END CASE; ",
)  # fmt: skip
MUTANTS = 1_500


def columns_of_row(text: str) -> frozenset[str]:
    return ProgramReader(StatementText(text.encode(), "d", 0, "5.6.24-log"), Known(), ("d", "t")).row_columns


@pytest.mark.parametrize("read_it", [read, body, columns_of_row])
def test_what_is_cut_or_changed_is_read_or_refused(read_it: Callable[[str], object]) -> None:
    for text in cut_and_changed():
        try:
            read_it(text)
        except (UnsupportedSyntax, ProtocolError):
            pass
        except Exception as error:
            raise AssertionError(text) from error


def cut_and_changed() -> list[str]:
    chance = random.Random(1)
    words = [re.findall(r"\w+|'[^']*'|[^\w\s]|\s+", one) for one in STATEMENTS]
    made = ["".join(one[:stop]) for one in words for stop in range(len(one))]
    for _ in range(MUTANTS):
        changed = list(chance.choice(words))
        for _change in range(chance.randrange(1, 4)):
            at, other = chance.randrange(len(changed)), chance.choice(chance.choice(words))
            changed[at : at + chance.randrange(2)] = [other] * chance.randrange(3)
            changed = changed or [other]
        made.append("".join(changed))
    return made


def test_a_column_of_a_row_without_its_name_is_none() -> None:
    assert columns_of_row("FOR EACH ROW SET @a = NEW.s, NEW.id = 1, @b = NEW.") == {"s"}
