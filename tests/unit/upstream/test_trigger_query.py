"""Which tables have triggers is told only by an account that is shown all of them."""

from typing import Any

import pytest

from relay.upstream.schema.trigger_query import MOST_TABLES, tables_with_triggers
from relay.upstream.source.answer_bound import ORDINARY, AnswerBound

ACCOUNT = "repl@10.0.0.%"
GRANTEE = "'repl'@'10.0.0.%'"


class Server:
    """A server that answers as an account with these privileges sees it."""

    def __init__(self, *held: tuple[str, str], tables: list[tuple[str, str]]) -> None:
        self.held, self.tables = held, tables

    async def query(
        self, statement: str, timeout_s: float | None = None, bound: AnswerBound = ORDINARY
    ) -> list[tuple[Any, ...]]:
        if "USER_PRIVILEGES" in statement:
            return [(grantee, privilege, ACCOUNT) for grantee, privilege in self.held]
        return list(self.tables)


@pytest.mark.parametrize("shows_tables", ["REFERENCES", "SELECT"])
async def test_an_account_that_sees_all_tables_and_triggers_tells_which_have_some(shows_tables: str) -> None:
    server = Server((GRANTEE, "TRIGGER"), (GRANTEE, shows_tables), tables=[("shop", "t")])
    assert await tables_with_triggers(server) == {("shop", "t")}


@pytest.mark.parametrize(
    "held",
    [
        (),
        ((GRANTEE, "TRIGGER"),),
        ((GRANTEE, "REFERENCES"),),
        (("'repl'@'%'", "TRIGGER"), (GRANTEE, "REFERENCES")),
    ],
)
async def test_an_account_that_may_not_see_all_does_not_say_that_there_are_none(
    held: tuple[tuple[str, str], ...],
) -> None:
    assert await tables_with_triggers(Server(*held, tables=[])) is None


async def test_too_many_are_not_held() -> None:
    server = Server((GRANTEE, "TRIGGER"), (GRANTEE, "SELECT"), tables=[("shop", "t")] * (MOST_TABLES + 1))
    assert await tables_with_triggers(server) is None
