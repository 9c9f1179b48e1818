"""The heads of statements, by which audits know what a statement does and which table it names first."""

import pytest

from protocol.sql.statements.statement_head import StatementHead, statement_head

HEADS = {
    "/*!40000 INSERT INTO t VALUES (1) */": StatementHead("INSERT", "", "", "t"),
    "INSERT INTO crm /* x */ . t VALUES (?)": StatementHead("INSERT", "", "crm", "t"),
    "WITH q AS (SELECT ?) UPDATE t SET a = ?": StatementHead("UPDATE", "", "", "t"),
    "DELETE t.* FROM t JOIN u": StatementHead("DELETE", "", "", "t"),
    "LOAD INDEX INTO CACHE t": StatementHead("LOAD"),
    "TRUNCATE a.b": StatementHead("TRUNCATE", "TABLE", "a", "b"),
    "RENAME TABLES a TO b": StatementHead("RENAME", "TABLE", "", "a"),
    "CREATE UNIQUE INDEX i ON t (a)": StatementHead("CREATE", "INDEX", "", "t"),
    "DROP INDEX i ON `x`.`t`": StatementHead("DROP", "INDEX", "x", "t"),
    "CREATE OR REPLACE ALGORITHM=MERGE DEFINER=a@b SQL SECURITY DEFINER VIEW v AS SELECT ?": StatementHead("CREATE", "VIEW"),
    "ALTER SCHEMA x CHARACTER SET latin1": StatementHead("ALTER", "DATABASE"),
    "CREATE TEMPORARY TABLE IF NOT EXISTS t (type INT)": StatementHead("CREATE", "TABLE", "", "t", True, True),
    "CREATE TABLE t (a INT) ENGINE=?": StatementHead("CREATE", "TABLE", "", "t"),
    "CREATE TABLE t (a INT) PARTITION BY HASH (a) (PARTITION p ENGINE=Aria)": StatementHead("CREATE", "TABLE", "", "t", engine="Aria"),
    "ALTER TABLE a.t ADD engine INT, ENGINE InnoDB": StatementHead("ALTER", "TABLE", "a", "t", engine="InnoDB"),
    "inserted INTO t": StatementHead("INSERTED"),
    "UPDATE": StatementHead("UPDATE"),
    "": StatementHead(),
}  # fmt: skip


@pytest.mark.parametrize("text", HEADS)
def test_the_head_of_a_statement_is_read(text: str) -> None:
    assert statement_head(text) == HEADS[text]
