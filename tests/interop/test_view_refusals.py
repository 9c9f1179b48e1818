"""What a newer MySQL refuses never stops a replica of a view: a sample of the survey `python -m tests.support.refusal_survey`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.servers import Server
from protocol.sql.server_variables import REMOVED_SYSTEM_TABLES, REMOVED_VARIABLES
from tests.conftest import ServerFactory
from tests.support.refusal_cases import MARIADB_STATEMENTS, MYSQL_STATEMENTS
from tests.support.refusal_survey import REPLICA_OPTIONS, SOURCE_OPTIONS, cases_of, refused_silently
from tests.support.refusal_trial import RefusalTrial

pytestmark = pytest.mark.interop
NTH = 97
OWN = {"mysql56": MYSQL_STATEMENTS[::4], "mariadb": MARIADB_STATEMENTS[::2], "mariadb118": MARIADB_STATEMENTS[1::4]}


@pytest.fixture(scope="module")
def replica(module_servers: ServerFactory) -> Iterator[Server]:
    return module_servers("mysql97").start(server_id=2, options=list(REPLICA_OPTIONS))


@pytest.mark.parametrize("name", ["mysql56", "mariadb", "mariadb118"])
def test_no_statement_is_refused_without_a_stop(
    name: str, module_servers: ServerFactory, replica: Server, tmp_path: Path
) -> None:
    source = module_servers(name).start(server_id=1, options=list(SOURCE_OPTIONS[name]))
    cases = [*cases_of(name, NTH if name == "mysql56" else 5 * NTH)]
    cases += [case for case in cases_of(name) if case.statements[0] in OWN[name] and case not in cases]
    outcomes = RefusalTrial(source, replica, tmp_path).run(cases)
    assert refused_silently(outcomes) == []
    assert sum(bool(outcome.stops) for outcome in outcomes) > 5


def test_the_variables_and_tables_that_are_no_more_are_those_of_the_servers(
    module_servers: ServerFactory, replica: Server
) -> None:
    old = module_servers("mysql56").start(server_id=3)

    def names(server: Server, statement: str) -> set[str]:
        return {str(row[0]).lower() for row in server.sql(statement)}

    def gone(*statements: str) -> set[str]:
        return {name for one in statements for name in names(old, one)} - {
            name for one in statements for name in names(replica, one)
        }

    assert gone("SHOW GLOBAL VARIABLES", "SHOW SESSION VARIABLES") - REMOVED_VARIABLES == set()
    assert gone("SHOW TABLES FROM mysql") <= REMOVED_SYSTEM_TABLES
