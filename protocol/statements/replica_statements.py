"""People's statements to a replica: SHOW SLAVE STATUS, STOP and START SLAVE, RESET SLAVE, in both dialects."""

from collections.abc import Sequence
from typing import Final

from protocol.statements.answers import Answer
from protocol.statements.expression.expressions import Statement
from protocol.statements.expression.shapes import Captured
from protocol.statements.expression.tokens import Kind, Token
from protocol.statements.requests import ShowReplicas, ShowReplicaStatus, StartReplica, StopReplica, Thread, Words
from protocol.statements.session.refusals import not_supported

_THREADS: Final[dict[str, Thread]] = {
    "IO_THREAD": "IO", "RELAY_THREAD": "IO", "REPLICA_IO_THREAD": "IO", "SQL_THREAD": "SQL", "REPLICA_SQL_THREAD": "SQL",
}  # fmt: skip
_OLD_WORDS: Final = ("SLAVE", "SLAVES", "MASTER")
_LOGIN_OPTIONS: Final = ("USER", "PASSWORD", "DEFAULT_AUTH", "PLUGIN_DIR")


def words_of(token: Token) -> Words:
    """Return the dialect to which a word such as SLAVES or SOURCE belongs."""
    return Words.MASTER_SLAVE if token.is_word(*_OLD_WORDS) else Words.SOURCE_REPLICA


def channel_of(statement: Statement, tokens: Sequence[Token]) -> tuple[str, Sequence[Token]]:
    """Return the channel with which tokens end (`FOR CHANNEL 'name'`) or begin (MariaDB: `'name'`), and the remaining tokens."""
    if len(tokens) > 1 and tokens[-2].is_word("CHANNEL") and len(tokens) > 2 and tokens[-3].is_word("FOR"):
        if tokens[-1].kind not in (Kind.STRING, Kind.WORD, Kind.NAME):
            raise statement.refuse(tokens[-1:])
        return tokens[-1].text, tokens[:-3]
    if tokens and tokens[0].is_text:
        return tokens[0].text, tokens[1:]
    return "", tokens


def show_replica_status(statement: Statement, captured: Captured) -> Answer:
    """Answer SHOW SLAVE|REPLICA ['name'] STATUS [FOR CHANNEL 'name']."""
    word, tokens = captured[0][0], captured[1]
    if tokens[0].is_text:
        if len(tokens) < 2 or not tokens[1].is_word("STATUS"):
            raise statement.refuse(tokens[1:])
        channel, rest = tokens[0].text, tokens[2:]
    elif tokens[0].is_word("STATUS"):
        channel, rest = channel_of(statement, tokens[1:])
    else:
        raise statement.refuse(tokens)
    if rest:
        raise statement.refuse(rest)
    return ShowReplicaStatus(words_of(word), channel)


def show_all_replicas_status(statement: Statement, captured: Captured) -> Answer:
    """Answer MariaDB's SHOW ALL SLAVES STATUS."""
    return ShowReplicaStatus(words_of(captured[0][0]), all_channels=True)


def show_slave_hosts(statement: Statement, captured: Captured) -> Answer:
    """Answer SHOW SLAVE HOSTS, in the older words."""
    return ShowReplicas(Words.MASTER_SLAVE)


def show_replicas(statement: Statement, captured: Captured) -> Answer:
    """Answer SHOW REPLICAS, in the newer words."""
    return ShowReplicas(Words.SOURCE_REPLICA)


def stop_replica(statement: Statement, captured: Captured) -> Answer:
    """Answer STOP SLAVE|REPLICA ['name'] [threads] [FOR CHANNEL 'name']."""
    channel, rest = channel_of(statement, captured[1])
    return StopReplica(words_of(captured[0][0]), _threads(statement, rest), channel)


def start_replica(statement: Statement, captured: Captured) -> Answer:
    """Answer START SLAVE|REPLICA ['name'] [threads] [FOR CHANNEL 'name']. UNTIL and login options are refused by name."""
    channel, rest = channel_of(statement, captured[1])
    for index, token in enumerate(rest):
        if token.is_word("UNTIL"):
            raise not_supported("START ... UNTIL", "it follows its source for ever")
        if token.is_word(*_LOGIN_OPTIONS) and index + 1 < len(rest) and rest[index + 1].is_symbol("="):
            raise not_supported(f"START ... {token.text.upper()} =", "the login to the source is in its configuration")
    return StartReplica(words_of(captured[0][0]), _threads(statement, rest), channel)


def stop_all_replicas(statement: Statement, captured: Captured) -> Answer:
    """Answer MariaDB's STOP ALL SLAVES."""
    return StopReplica(words_of(captured[0][0]), all_channels=True)


def start_all_replicas(statement: Statement, captured: Captured) -> Answer:
    """Answer MariaDB's START ALL SLAVES."""
    return StartReplica(words_of(captured[0][0]), all_channels=True)


def reset_replica(statement: Statement, captured: Captured) -> Answer:
    """Refuse RESET SLAVE: nobody should lose the archive by a habit."""
    raise not_supported(statement.source(statement.tokens[:2]).upper(), "use CHANGE MASTER TO for another source")


def reset_source(statement: Statement, captured: Captured) -> Answer:
    """Refuse RESET MASTER and RESET BINARY LOGS AND GTIDS, which would delete the archive."""
    raise not_supported(
        statement.source(statement.tokens[:2]).upper(), "PURGE BINARY LOGS removes files that nobody needs"
    )


def _threads(statement: Statement, tokens: Sequence[Token]) -> frozenset[Thread]:
    threads: set[Thread] = set()
    for part in statement.split(tokens) if tokens else ():
        thread = _THREADS.get(part[0].text.upper()) if part and part[0].kind is Kind.WORD else None
        if thread is None or len(part) != 1:
            raise statement.refuse(part[1:] if thread else part)
        threads.add(thread)
    return frozenset(threads)
