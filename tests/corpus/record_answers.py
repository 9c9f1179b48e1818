"""Records what real servers answer: `python -m tests.corpus.record_answers [mysql56 ...]` writes answers/NAME.json.

All statements of the corpus go to one connection, in its order: what one sets, a later one reads.
"""

import contextlib
import json
import sys
from dataclasses import asdict
from pathlib import Path

from deploy.servers import SERVERS
from tests.support.described_answer import Asker
from tests.support.statement_corpus import ERRORS, SAME, SAME_SHAPE

ANSWERS = Path(__file__).parent / "answers"


def record(name: str) -> None:
    """Starts that server, asks it, and writes its answers."""
    with SERVERS[name]() as server:
        server.start(server_id=1)
        with contextlib.closing(Asker(server.port, server.replication_user, server.replication_password)) as asker:
            answers = [{"statement": statement, **asdict(asker.ask(statement))} for statement in SAME + SAME_SHAPE]
        with contextlib.closing(Asker(server.port, "root", "", charset="utf8mb4")) as asker:
            answers += [{"statement": statement, **asdict(asker.ask(statement))} for statement in ERRORS]
            facts = asker.ask("SELECT VERSION()").rows[0][0]
            uuid = asker.ask("SELECT @@server_uuid")
    lines = ",\n".join(json.dumps(answer, ensure_ascii=False) for answer in answers)
    head = json.dumps({"version": facts, "uuid": uuid.rows[0][0] if uuid.rows else None, "flavour": server.flavour})
    (ANSWERS / f"{name}.json").write_text(f'{{"server": {head},\n"answers": [\n{lines}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    ANSWERS.mkdir(exist_ok=True)
    for wanted in sys.argv[1:] or SERVERS:
        record(wanted)
