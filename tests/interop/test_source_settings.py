"""What the source's variables say of its binlogs is shown by the relay as the source has it."""

from pathlib import Path

import pytest

from protocol.statements.session.source_settings import SOURCE_SETTINGS
from tests.conftest import ServerFactory
from tests.support.chain import Chain, wait_until

pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]

# None of these is what the version has by default.
OPTIONS = {
    "mysql56": ["--binlog-format=ROW", "--binlog-row-image=MINIMAL", "--character-set-server=utf8mb4"],
    "mysql97": [
        *("--binlog-format=MIXED", "--binlog-row-metadata=FULL", "--binlog-row-value-options=PARTIAL_JSON"),
        *("--binlog-rows-query-log-events=ON", "--binlog-transaction-compression=ON", "--max-binlog-size=8192"),
    ],
    "mariadb": [
        *(
            "--binlog-format=ROW",
            "--binlog-row-metadata=FULL",
            "--binlog-annotate-row-events=OFF",
            "--log-bin-compress=ON",
        ),
        *("--lower-case-table-names=1", "--character-set-server=utf8mb4", "--collation-server=utf8mb4_bin"),
    ],
}
ASK = f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({', '.join(map(repr, SOURCE_SETTINGS))})"


@pytest.mark.parametrize("name", OPTIONS)
def test_they_are_the_sources_by_show_and_select_live_and_while_it_is_away(
    servers: ServerFactory, tmp_path: Path, name: str
) -> None:
    with Chain(servers, name, tmp_path, options=OPTIONS[name]) as chain:
        source, relay = chain.source, chain.relay
        wait_until(relay.archived, "the relay has a binlog")
        shown = source.sql(ASK)
        assert relay.sql(ASK) == shown
        for variable, _ in shown:
            assert relay.sql(f"SELECT @@global.{variable}") == source.sql(f"SELECT @@global.{variable}"), variable

        before = source.sql("SELECT @@global.binlog_format")
        source.execute_many(["SET GLOBAL binlog_format = 'STATEMENT'", "FLUSH BINARY LOGS"])
        wait_until(lambda: relay.sql(ASK) == source.sql(ASK), "the relay shows the format as it is now")
        assert relay.sql("SELECT @@global.binlog_format") == [("STATEMENT",)] != before

        last = source.sql(ASK)
        relay.kill()
        source.kill()
        relay.start()
        assert relay.sql(ASK) == last
