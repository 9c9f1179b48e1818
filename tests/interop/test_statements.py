"""The relay in front of a real server, asked what replicas, tools and monitors ask: its answers are the server's.

Each question goes to both. Columns are compared in every field of their definitions but the width, which differs between
point releases of a server; what those of one release are, tests/corpus/answers holds.
"""

import contextlib
from collections.abc import Iterator

import pytest

from tests.interop.conftest import ChainFactory
from tests.support.chain import Chain, wait_until
from tests.support.described_answer import Asker, DescribedAnswer
from tests.support.statement_corpus import ALIKE, COMMANDS, DENIED, ERRORS, SAME, SAME_SHAPE, SHOWN

pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]

# Which size of a number a column has differs between versions; no client can tell it from the text.
_KINDS = {2: "integer", 3: "integer", 8: "integer", 4: "real", 5: "real", 12: "time", 246: "decimal"} | dict.fromkeys(
    (251, 252, 253, 254), "text"
)
SOURCES = ("mysql56", "mysql97", "mariadb", "mariadb118")


@pytest.fixture(scope="module", params=SOURCES)
def chain(request: pytest.FixtureRequest, module_chains: ChainFactory) -> Chain:
    source_name: str = request.param
    account = {"user": "repl", "password": "repl-password"}
    made = module_chains(source_name, sections={"[account]": account})
    wait_until(lambda: made.relay.archived(), "the relay has a binlog")
    return made


@pytest.fixture
def askers(chain: Chain) -> Iterator[tuple[Asker, Asker]]:
    """The source and the relay, to the same account."""
    user, password = chain.source.replication_user, chain.source.replication_password
    with contextlib.ExitStack() as open_askers:
        made = [Asker(port, user, password) for port in (chain.source.port, chain.relay.port)]
        for asker in made:
            open_askers.callback(asker.close)
        yield made[0], made[1]


@pytest.fixture
def root(chain: Chain) -> Iterator[Asker]:
    """The source, to an account that may do everything."""
    with contextlib.closing(Asker(chain.source.port, "root", "", charset="utf8mb4")) as asker:
        yield asker


def test_what_is_asked_on_connect_is_answered_as_the_source_answers(askers: tuple[Asker, Asker]) -> None:
    source, relay = askers
    differences = []
    for statement in SAME:
        expected, got = source.ask(statement), relay.ask(statement)
        if expected.error or got.error:
            if expected.error != got.error:
                differences.append(f"{statement}: {expected.error} {expected.message}, not {got.error} {got.message}")
            continue
        differences += different_columns(statement, expected, got)
        if expected.rows != got.rows:
            differences.append(f"{statement}: {expected.rows}, not {got.rows}")
    assert not differences, "\n".join(differences)


def test_what_is_the_relays_own_has_the_sources_shape(askers: tuple[Asker, Asker]) -> None:
    source, relay = askers
    differences = []
    for statement in SAME_SHAPE:
        expected, got = source.ask(statement), relay.ask(statement)
        differences += different_columns(statement, expected, got)
        if (expected.shapes, expected.error) != (got.shapes, got.error):
            differences.append(f"{statement}: {expected.rows} {expected.message}, not {got.rows} {got.message}")
    assert not differences, "\n".join(differences)


def different_columns(statement: str, expected: DescribedAnswer, got: DescribedAnswer) -> list[str]:
    if len(expected.columns) != len(got.columns):
        return [f"{statement}: {len(expected.columns)} columns, not {len(got.columns)} {got.message}"]
    pairs = zip(expected.columns, got.columns, strict=True)
    return [
        f"{statement}:\n    {one}, not\n    {other}" for one, other in pairs if one.without_width != other.without_width
    ]


def test_a_text_column_is_as_wide_as_its_values(askers: tuple[Asker, Asker]) -> None:
    _, relay = askers
    too_long = []
    for statement in SAME + SAME_SHAPE:
        answer = relay.ask(statement)
        for row in answer.rows:
            for column, value in zip(answer.columns, row, strict=True):
                if value is not None and _KINDS.get(column.kind) == "text" and len(value.encode()) > column.length:
                    too_long.append(f"{statement}: {value!r} in {column}")
    assert not too_long, "\n".join(too_long)


def test_a_refused_statement_gets_the_sources_number(root: Asker, askers: tuple[Asker, Asker]) -> None:
    _, relay = askers
    differences = []
    for statement in ERRORS:
        expected, got = root.ask(statement), relay.ask(statement)
        if got.error != expected.error or not got.error:
            differences.append(f"{statement}: {expected.error} {expected.message}, not {got.error} {got.message}")
    assert not differences, "\n".join(differences)


def test_what_people_and_tools_ask_besides_is_answered_alike(root: Asker, chain: Chain) -> None:
    differences = []
    with contextlib.closing(
        Asker(chain.relay.port, chain.source.replication_user, chain.source.replication_password, charset="utf8mb4")
    ) as relay:
        for statement in ALIKE:
            expected, got = root.ask(statement), relay.ask(statement)
            if expected.error or got.error:
                if expected.error != got.error:
                    text = f"{expected.error} {expected.message}, not {got.error} {got.message}"
                    differences.append(f"{statement}: {text}")
                continue
            seen = [
                ([(column.name, _KINDS[column.kind]) for column in answer.columns], answer.rows)
                for answer in (expected, got)
            ]
            if seen[0] != seen[1]:
                differences.append(f"{statement}:\n    {seen[0]}, not\n    {seen[1]}")
    assert not differences, "\n".join(differences)


def test_columns_of_the_console_are_of_the_sources_kind_with_rows_and_without(
    root: Asker, askers: tuple[Asker, Asker]
) -> None:
    _, relay = askers
    differences = []
    compared = 0
    for statement in SHOWN:
        expected, got = root.ask(statement), relay.ask(statement)
        if expected.error == 1064:
            continue  # words of another version
        kinds = [[(column.name, _KINDS[column.kind]) for column in answer.columns] for answer in (expected, got)]
        compared += len(kinds[0])
        differences += [f"{statement}: {one}, not {other}" for one, other in zip(*kinds, strict=True) if one != other]
    assert not differences, "\n".join(differences)
    assert compared > 60


@pytest.mark.parametrize("statement", DENIED)
def test_what_changes_the_relay_is_denied_to_a_replicas_account(askers: tuple[Asker, Asker], statement: str) -> None:
    _, relay = askers
    assert relay.ask(statement).error == 1227


def test_commands_are_answered_as_by_the_source(root: Asker, askers: tuple[Asker, Asker]) -> None:
    _, relay = askers
    differences = []
    for code, body in COMMANDS:
        expected, got = root.command(code, body), relay.command(code, body)
        # OK and EOF byte for byte; of an error the number and the SQLSTATE.
        size = 9 if expected[0] == 0xFF else len(expected)
        if expected[:size] != got[:size]:
            differences.append(f"0x{code:02x} {body!r}: {expected!r}, not {got!r}")
    assert not differences, "\n".join(differences)
