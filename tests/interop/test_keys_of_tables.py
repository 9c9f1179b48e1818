"""Keys, foreign keys and collations as statements say them, against what each server answers: equal, or not known."""

import pytest

from tests.conftest import ServerFactory
from tests.support.key_histories import OPTIONS, KeyOutcome, run_history

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[audit]'")

pytestmark = pytest.mark.interop

HISTORIES, STEPS = 4, 60
KNOWN = 0.8
"""At least so much of what there is: what is not known is not wrong, but of no use."""


@pytest.mark.parametrize("name", ["mysql56", "mysql97", "mariadb", "mariadb118"])
def test_what_random_statements_say_is_what_the_server_answers_or_not_known(servers: ServerFactory, name: str) -> None:
    server = servers(name).start(server_id=1, options=OPTIONS)
    total = KeyOutcome()
    for seed in range(1, HISTORIES + 1):
        _history, outcome = run_history(server, seed, STEPS)
        total.add(outcome)
    assert not total.wrong, total.wrong[:3]
    for what, unknown in (
        ("tables", "tables not known"),
        ("unique keys", "unique keys not known"),
        ("foreign keys of tables", "foreign keys not known"),
        ("collations", "collations not known"),
    ):
        assert total.known[what] >= KNOWN * (total.known[what] + total.known[unknown]), total.known
    assert total.known["foreign keys"] > 0
