"""Applications of Debian's packages, and traffic over their tables, through a view: a MySQL 9.7 has the same rows. All of them:
`python -m tests.applications`."""

from pathlib import Path

import pytest

from deploy.servers.location import ServerUnavailable
from tests.applications.schemas import APPLICATIONS
from tests.applications.trial import follow_application
from tests.conftest import ServerFactory
from tests.support.view_trial import REPLICA_OPTIONS, ViewTrial

pytestmark = pytest.mark.interop


@pytest.mark.parametrize(
    ("name", "source", "binlog_format"),
    [("PowerDNS", "mysql56", "STATEMENT"), ("Gammu SMSD", "mysql56", "MIXED"), ("Tango", "mariadb118", "STATEMENT")],
)
def test_an_application_passes_a_view_and_leaves_the_same_rows(
    servers: ServerFactory, tmp_path: Path, name: str, source: str, binlog_format: str
) -> None:
    (application,) = (one for one in APPLICATIONS if one.name == name)
    replica = servers("mysql97").start(server_id=2, options=list(REPLICA_OPTIONS))
    here = ViewTrial(servers(source).start(server_id=1), replica, tmp_path)
    try:
        found = follow_application(here, application, binlog_format, seed=1, rounds=3)
    except ServerUnavailable as error:
        pytest.skip(str(error))
    assert found.tables > 1
    assert (list(found.names()), found.error, found.differing) == ([], "", [])
