"""What replicas and their tools ask in SQL, and the answers: a tokenizer and a table.

The table at the end of this module lists every shape of statement that is understood. Whatever is not in it gets
ER_PARSE_ERROR, a variable that this source would not have ER_UNKNOWN_SYSTEM_VARIABLE; both keep the connection.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import Final, Literal

from protocol.errors import ErrorCode, StatementRefused
from protocol.packets import cut_text
from protocol.resultset import Rows, Value

# A session's variables are the replica's to choose; these bounds keep a hostile one from filling the memory with them.
MAX_USER_VARIABLES: Final = 64
MAX_NAME_CHARACTERS: Final = 64
MAX_VALUE_CHARACTERS: Final = 16384
_MAX_DEPTH: Final = 8
_MAX_ITEMS: Final = 64
# Statements are cut into tokens on the event loop: no statement of a replica has a twentieth of these.
_MAX_TOKENS: Final = 4096


# --- what the answers are made of ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """The source as its replicas see it through the relay.

    `version`: as `SELECT VERSION()` says it, e.g. `10.11.19-MariaDB-log`. `checksum`: what the newest file has.
    """

    flavour: Literal["mysql", "mariadb"]
    version: str
    server_id: int
    server_uuid: str | None = None
    checksum: Literal["CRC32", "NONE"] = "NONE"
    gtid_mode: str = "OFF"

    @property
    def version_numbers(self) -> tuple[int, ...]:
        """(5, 6, 24) for `5.6.24-log`."""
        match = re.match(r"(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?", self.version)
        return tuple(int(part) for part in match.groups(default="0")) if match else (0, 0, 0)


@dataclass(slots=True)
class StatementSession:
    """What statements of one connection see and change. Names of user variables are kept in lower case."""

    facts: SourceFacts
    connection_id: int
    user: str = ""
    host: str = ""
    user_variables: dict[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Done:
    """Answered with OK."""


@dataclass(frozen=True, slots=True)
class KillConnection:
    """Asks that another connection be ended; whoever knows the connections answers."""

    connection_id: int


Answer = Done | Rows | KillConnection


# --- tokens -------------------------------------------------------------------------------------------------------


class Kind(Enum):
    """What a token is."""

    WORD = "word"
    NAME = "quoted name"
    STRING = "string"
    NUMBER = "number"
    USER_VARIABLE = "user variable"
    SYSTEM_VARIABLE = "system variable"
    SYMBOL = "symbol"


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of a statement. `text`: without quotes and sigils; [start, stop) is its place in the statement."""

    kind: Kind
    text: str
    start: int
    stop: int
    scope: str = ""

    def is_word(self, word: str) -> bool:
        """Whether this is that keyword, in any case."""
        return self.kind is Kind.WORD and self.text.upper() == word

    def is_symbol(self, *symbols: str) -> bool:
        """Whether this is one of these symbols."""
        return self.kind is Kind.SYMBOL and self.text in symbols


# Possessive quantifiers (++, *+): an unterminated quote of a megabyte must fail in linear time.
_SINGLE: Final = r"'(?:[^'\\]++|\\.|'')*+'"
_DOUBLE: Final = r'"(?:[^"\\]++|\\.|"")*+"'
_BACKTICK: Final = r"`(?:[^`]++|``)*+`"
_WORD: Final = r"[A-Za-z_$\u0080-\uffff][\w$\u0080-\uffff]*+"
_TOKEN: Final = re.compile(
    rf"""
      (?P<space> \s++ | --(?=\s|$)[^\n]*+ | \#[^\n]*+
               | /\*M?!\d{{0,6}} | \*/                    # what a version comment holds is part of the statement
               | /\*.*?\*/ )
    | @@ (?: (?P<scope>global|session|local) \s*+ \. \s*+ )? (?P<system> {_WORD}(?:\.{_WORD})? | {_BACKTICK} )
    | @ (?P<variable> [\w.$]++ | {_SINGLE} | {_DOUBLE} | {_BACKTICK} )
    | (?P<string> {_SINGLE} | {_DOUBLE} )
    | (?P<name> {_BACKTICK} )
    | (?P<number> 0x[0-9A-Fa-f]++ | \d++(?:\.\d*+)?(?:[eE][+-]?\d++)? )
    | (?P<word> {_WORD} )
    | (?P<symbol> := | /(?!\*) | [=,().*;+\-<>!%&|^~?:{{}}\[\]] )
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "Z": "\x1a"}


def tokenize(statement: str) -> list[Token]:
    """Cut a statement into tokens, without comments, spaces and the semicolons at its end.

    Raises: StatementRefused (ER_PARSE_ERROR) at the first character that begins no token, such as an open quote, and
    for a statement of more than 4096 tokens.
    """
    tokens: list[Token] = []
    offset = count = 0
    while offset < len(statement):
        match = _TOKEN.match(statement, offset)
        count += 1
        if match is None or count > _MAX_TOKENS:
            raise not_understood(statement[offset:])
        start, offset = offset, match.end()
        if match["space"] is not None:
            continue
        if match["system"] is not None:
            name, scope = _unquote(match["system"]), (match["scope"] or "").lower()
            tokens.append(Token(Kind.SYSTEM_VARIABLE, name, start, offset, scope))
        elif match["variable"] is not None:
            tokens.append(Token(Kind.USER_VARIABLE, _unquote(match["variable"]), start, offset))
        elif match["string"] is not None:
            tokens.append(Token(Kind.STRING, _unquote(match["string"]), start, offset))
        elif match["name"] is not None:
            tokens.append(Token(Kind.NAME, _unquote(match["name"]), start, offset))
        elif match["number"] is not None:
            tokens.append(Token(Kind.NUMBER, match["number"], start, offset))
        elif match["word"] is not None:
            tokens.append(Token(Kind.WORD, match["word"], start, offset))
        else:
            tokens.append(Token(Kind.SYMBOL, match["symbol"], start, offset))
    while tokens and tokens[-1].is_symbol(";"):
        tokens.pop()
    return tokens


def _unquote(text: str) -> str:
    quote = text[0]
    if quote not in "'\"`":
        return text
    inner = text[1:-1].replace(quote * 2, quote)
    if quote == "`" or "\\" not in inner:
        return inner
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), inner, flags=re.DOTALL)


# --- errors -------------------------------------------------------------------------------------------------------


def _shown(text: str, limit_bytes: int = 80) -> str:
    return cut_text(" ".join(text[: limit_bytes * 2].split()), limit_bytes).decode()


def not_understood(text: str) -> StatementRefused:
    """ER_PARSE_ERROR that names the part which was not understood."""
    return StatementRefused(
        ErrorCode.ER_PARSE_ERROR,
        "You have an error in your SQL syntax; binlog-relay answers only what replicas and their tools ask, "
        f"and does not understand '{_shown(text)}'",
    )


def _unknown_variable(name: str) -> StatementRefused:
    return StatementRefused(ErrorCode.ER_UNKNOWN_SYSTEM_VARIABLE, f"Unknown system variable '{_shown(name, 64)}'")


# --- system variables ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SystemVariable:
    """A variable that can be read. `mysql`, `mariadb`: the first version that has it, None: no version has."""

    value: Callable[[StatementSession], Value]
    mysql: tuple[int, ...] | None = (0,)
    mariadb: tuple[int, ...] | None = (0,)

    def exists(self, session: StatementSession) -> bool:
        """Whether a source of this flavour and version has it, with a value."""
        since = self.mysql if session.facts.flavour == "mysql" else self.mariadb
        return since is not None and session.facts.version_numbers >= since and self.value(session) is not None


# No rpl_semi_sync_* here: "no such variable" is how a replica learns that it gets no semi-sync.
# bool: SELECT shows 1 and 0, SHOW VARIABLES shows ON and OFF.
# fmt: off
SYSTEM_VARIABLES: Final[dict[str, SystemVariable]] = {
    "autocommit":               SystemVariable(lambda session: True),
    "binlog_checksum":          SystemVariable(lambda session: session.facts.checksum, mysql=(5, 6, 1), mariadb=(5, 3)),
    "character_set_client":     SystemVariable(lambda session: "utf8"),
    "character_set_connection": SystemVariable(lambda session: "utf8"),
    "character_set_results":    SystemVariable(lambda session: "utf8"),
    "character_set_server":     SystemVariable(lambda session: "utf8"),
    "collation_connection":     SystemVariable(lambda session: "utf8_general_ci"),
    "gtid_domain_id":           SystemVariable(lambda session: 0, mysql=None, mariadb=(10, 0, 2)),
    "gtid_mode":                SystemVariable(lambda session: session.facts.gtid_mode, mysql=(5, 6, 5), mariadb=None),
    "log_bin":                  SystemVariable(lambda session: True),
    "lower_case_table_names":   SystemVariable(lambda session: 0),
    "max_allowed_packet":       SystemVariable(lambda session: 1073741824),
    "read_only":                SystemVariable(lambda session: True),
    "server_id":                SystemVariable(lambda session: session.facts.server_id),
    "server_uuid":              SystemVariable(lambda session: session.facts.server_uuid, mysql=(5, 6), mariadb=None),
    "sql_mode":                 SystemVariable(lambda session: ""),
    "time_zone":                SystemVariable(lambda session: "SYSTEM"),
    "version":                  SystemVariable(lambda session: session.facts.version),
    "version_comment":          SystemVariable(lambda session: "binlog-relay"),
    "wait_timeout":             SystemVariable(lambda session: 28800),
}
# fmt: on

# Set by client libraries of their own accord; nothing here depends on them.
SETTABLE: Final = frozenset(
    (
        "autocommit",
        "character_set_client",
        "character_set_connection",
        "character_set_results",
        "collation_connection",
        "interactive_timeout",
        "net_read_timeout",
        "net_write_timeout",
        "sql_auto_is_null",
        "sql_mode",
        "sql_quote_show_create",
        "time_zone",
        "wait_timeout",
    )
)


def _read_variable(name: str, session: StatementSession) -> Value:
    variable = SYSTEM_VARIABLES.get(name.lower())
    if variable is None or not variable.exists(session):
        raise _unknown_variable(name)
    return variable.value(session)


# --- functions ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Call:
    session: StatementSession
    now_s: float
    arguments: Sequence[Value]


def _date_text(call: _Call) -> Value:
    return datetime.fromtimestamp(call.now_s, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _user_text(call: _Call) -> Value:
    return f"{call.session.user}@{call.session.host}"


def _concat(call: _Call) -> Value:
    return None if None in call.arguments else "".join(_as_text(value) for value in call.arguments)


# name: (fewest arguments, most arguments, answer). BINLOG_GTID_POS: any value would be loaded into the replica's GTID
# state, so NULL. UNIX_TIMESTAMP: ours; the source's clock is not asked for each replica.
# fmt: off
FUNCTIONS: Final[dict[str, tuple[int, int, Callable[[_Call], Value]]]] = {
    "BINLOG_GTID_POS":   (2, 2, lambda call: None),
    "CONCAT":            (1, 8, _concat),
    "CONNECTION_ID":     (0, 0, lambda call: call.session.connection_id),
    "CURRENT_TIMESTAMP": (0, 0, _date_text),
    "CURRENT_USER":      (0, 0, _user_text),
    "DATABASE":          (0, 0, lambda call: None),
    "NOW":               (0, 0, _date_text),
    "SCHEMA":            (0, 0, lambda call: None),
    "UNIX_TIMESTAMP":    (0, 0, lambda call: int(call.now_s)),
    "USER":              (0, 0, _user_text),
    "VERSION":           (0, 0, lambda call: call.session.facts.version),
}
# fmt: on
_WITHOUT_PARENTHESES: Final = frozenset(("CURRENT_TIMESTAMP", "CURRENT_USER"))
_CONSTANTS: Final[dict[str, Value]] = {"NULL": None, "TRUE": 1, "FALSE": 0}


# --- expressions --------------------------------------------------------------------------------------------------


class _Statement:
    """A statement while it is answered."""

    def __init__(self, text: str, session: StatementSession, now_s: float) -> None:
        self.text = text
        self.session = session
        self.now_s = now_s
        self.tokens = tokenize(text)

    def source(self, tokens: Sequence[Token]) -> str:
        """The statement's own spelling of these tokens."""
        return self.text[tokens[0].start : tokens[-1].stop] if tokens else ""

    def refuse(self, tokens: Sequence[Token]) -> StatementRefused:
        """The error for tokens that were not understood; without any, for the statement."""
        return not_understood(self.source(tokens) or self.text)

    def evaluate(self, tokens: Sequence[Token], depth: int = 0) -> Value:
        """The value of an expression: a constant, a variable, or a function of such."""
        if not tokens or depth > _MAX_DEPTH:
            raise self.refuse(tokens)
        first = tokens[0]
        if first.kind is Kind.WORD and len(tokens) > 1 and tokens[1].is_symbol("(") and tokens[-1].is_symbol(")"):
            return self._call(first, tokens[2:-1], depth)
        if first.is_symbol("-", "+") and len(tokens) == 2 and tokens[1].kind is Kind.NUMBER:
            value = _number(tokens[1].text)
            return -value if isinstance(value, int) and first.text == "-" else value
        if len(tokens) != 1:
            raise self.refuse(tokens)
        if first.kind is Kind.STRING:
            return first.text
        if first.kind is Kind.NUMBER:
            return _number(first.text)
        if first.kind is Kind.USER_VARIABLE:
            return self.session.user_variables.get(first.text.lower())
        if first.kind is Kind.SYSTEM_VARIABLE:
            return _read_variable(first.text, self.session)
        if first.kind is Kind.WORD and first.text.upper() in _CONSTANTS:
            return _CONSTANTS[first.text.upper()]
        if first.kind is Kind.WORD and first.text.upper() in _WITHOUT_PARENTHESES:
            return self._call(first, (), depth)
        raise self.refuse(tokens)

    def _call(self, name: Token, inner: Sequence[Token], depth: int) -> Value:
        entry = FUNCTIONS.get(name.text.upper())
        if entry is None:
            raise StatementRefused(
                ErrorCode.ER_SP_DOES_NOT_EXIST, f"FUNCTION {_shown(name.text, 64)} does not exist in binlog-relay"
            )
        fewest, most, answer = entry
        arguments = [self.evaluate(part, depth + 1) for part in self.split(inner)] if inner else []
        if not fewest <= len(arguments) <= most:
            raise self.refuse((name, *inner))
        return answer(_Call(self.session, self.now_s, arguments))

    def split(self, tokens: Sequence[Token]) -> list[Sequence[Token]]:
        """The parts between the commas that are in no parentheses."""
        parts: list[Sequence[Token]] = []
        depth = 0
        start = 0
        for index, token in enumerate(tokens):
            if token.is_symbol("("):
                depth += 1
            elif token.is_symbol(")"):
                depth -= 1
            elif depth == 0 and token.is_symbol(","):
                parts.append(tokens[start:index])
                start = index + 1
        parts.append(tokens[start:])
        if len(parts) > _MAX_ITEMS:
            raise self.refuse(tokens)
        return parts


def _number(text: str) -> Value:
    if text[:2] in ("0x", "0X"):
        return int(text, 16) if len(text) <= 18 else text
    # Longer ones are no number that anything here needs, and int() would work on them for long.
    return int(text) if text.isdecimal() and len(text) <= 20 else text


def _as_text(value: Value) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


# --- answers ------------------------------------------------------------------------------------------------------

_Captured = Sequence[Sequence[Token]]


def _done(statement: _Statement, captured: _Captured) -> Answer:
    return Done()


def _no_rows(statement: _Statement, captured: _Captured) -> Answer:
    return Rows(("Level", "Code", "Message"), ())


def _select(statement: _Statement, captured: _Captured) -> Answer:
    labels: list[str] = []
    values: list[Value] = []
    for item in statement.split(_without_tail(captured[0])):
        expression, label = item, statement.source(item)
        if len(item) > 2 and item[-2].is_word("AS") and item[-1].kind in (Kind.WORD, Kind.NAME, Kind.STRING):
            expression, label = item[:-2], item[-1].text
        value = statement.evaluate(expression)
        labels.append(_shown(label, 256))
        values.append(int(value) if isinstance(value, bool) else value)
    return Rows(tuple(labels), (tuple(values),))


def _without_tail(tokens: Sequence[Token]) -> Sequence[Token]:
    """Without `LIMIT 1` and `FROM DUAL`, which tools put behind a SELECT of variables."""
    if len(tokens) > 2 and tokens[-2].is_word("LIMIT") and tokens[-1].kind is Kind.NUMBER:
        tokens = tokens[:-2]
    if len(tokens) > 2 and tokens[-2].is_word("FROM") and tokens[-1].is_word("DUAL"):
        tokens = tokens[:-2]
    return tokens


def _variable_rows(session: StatementSession, wanted: Callable[[str], bool]) -> Rows:
    rows: list[tuple[Value, ...]] = []
    for name, variable in SYSTEM_VARIABLES.items():
        if wanted(name) and variable.exists(session):
            value = variable.value(session)
            rows.append((name, ("ON" if value else "OFF") if isinstance(value, bool) else str(value)))
    return Rows(("Variable_name", "Value"), tuple(rows))


def _show_all_variables(statement: _Statement, captured: _Captured) -> Answer:
    return _variable_rows(statement.session, lambda name: True)


def _show_variables_like(statement: _Statement, captured: _Captured) -> Answer:
    pattern = captured[0][0].text
    return _variable_rows(statement.session, lambda name: matches_like(name, pattern))


def _show_variable(statement: _Statement, captured: _Captured) -> Answer:
    wanted = captured[0][0].text.lower()
    return _variable_rows(statement.session, lambda name: name == wanted)


def matches_like(text: str, pattern: str) -> bool:
    """SQL's LIKE, in any case: `%` any characters, `_` one character, a backslash takes their meaning away."""
    wanted: list[tuple[str, bool]] = []
    characters = iter(pattern[: MAX_NAME_CHARACTERS * 2].lower())
    for character in characters:
        if character == "\\":
            wanted.append((next(characters, "\\"), False))
        else:
            wanted.append((character, character in "%_"))
    # One row of the usual table per character of the pattern: no backtracking, whatever the pattern.
    reachable = {0}
    for character, is_wild in wanted:
        if is_wild and character == "%":
            reachable = set(range(min(reachable), len(text) + 1))
        else:
            reachable = {
                index + 1 for index in reachable if index < len(text) and (is_wild or text[index].lower() == character)
            }
        if not reachable:
            return False
    return len(text) in reachable


def _set(statement: _Statement, captured: _Captured) -> Answer:
    changes: dict[str, Value] = {}
    for assignment in statement.split(captured[0]):
        _assign(statement, assignment, changes)
    variables = statement.session.user_variables
    if len(variables | changes) > MAX_USER_VARIABLES:
        raise StatementRefused(
            ErrorCode.ER_UNKNOWN_ERROR, f"More than {MAX_USER_VARIABLES} user variables are not kept"
        )
    variables.update(changes)
    return Done()


def _assign(statement: _Statement, assignment: Sequence[Token], changes: dict[str, Value]) -> None:
    """One `name = expression` of a SET. User variables go to `changes`: all of a statement's assignments, or none."""
    scope = ""
    tokens = assignment
    if tokens and tokens[0].kind is Kind.WORD and tokens[0].text.upper() in ("GLOBAL", "SESSION", "LOCAL"):
        scope, tokens = tokens[0].text.lower(), tokens[1:]
    if len(tokens) < 3 or not tokens[1].is_symbol("=", ":="):
        raise statement.refuse(assignment)
    target, expression = tokens[0], tokens[2:]
    if target.kind is Kind.USER_VARIABLE:
        value = statement.evaluate(expression)
        if len(target.text) > MAX_NAME_CHARACTERS or len(str(value)) > MAX_VALUE_CHARACTERS:
            raise StatementRefused(ErrorCode.ER_UNKNOWN_ERROR, f"User variable '{_shown(target.text)}' is too long")
        changes[target.text.lower()] = value
        return
    if target.kind not in (Kind.WORD, Kind.NAME, Kind.SYSTEM_VARIABLE):
        raise statement.refuse(assignment)
    name = target.text.lower()
    if (target.scope or scope) == "global":
        raise StatementRefused(
            ErrorCode.ER_SPECIFIC_ACCESS_DENIED_ERROR,
            f"Access denied; binlog-relay has no global variables to set ('{_shown(name, 64)}')",
        )
    if name == "skip_replication":
        # The source would leave events out, which would shift positions; said, not ignored.
        if statement.evaluate(expression) not in (0, "0"):
            raise StatementRefused(
                ErrorCode.ER_NOT_SUPPORTED_YET,
                "binlog-relay leaves no events out: set replicate_events_marked_for_skip to FILTER_ON_SLAVE",
            )
    elif name not in SETTABLE:
        raise _unknown_variable(target.text)


def _kill(statement: _Statement, captured: _Captured) -> Answer:
    value = _number(captured[0][0].text)
    if not isinstance(value, int):
        raise statement.refuse(captured[0])
    return KillConnection(value)


# --- the table ----------------------------------------------------------------------------------------------------
# WORDS are keywords, [A|B] may be left out, {string} {number} {word} are one token, {rest} is everything that follows
# (at least one token). The first shape that fits answers.

# fmt: off
_SHAPES: Final[tuple[tuple[str, Callable[[_Statement, _Captured], Answer]], ...]] = (
    ("SELECT {rest}",                                                    _select),
    ("SHOW [GLOBAL|SESSION|LOCAL] VARIABLES LIKE {string}",              _show_variables_like),
    ("SHOW [GLOBAL|SESSION|LOCAL] VARIABLES WHERE VARIABLE_NAME = {string}", _show_variable),
    ("SHOW [GLOBAL|SESSION|LOCAL] VARIABLES",                            _show_all_variables),
    ("SHOW WARNINGS",                                                    _no_rows),
    ("SET NAMES {rest}",                                                 _done),
    ("SET CHARACTER SET {rest}",                                         _done),
    ("SET {rest}",                                                       _set),
    ("KILL [CONNECTION|QUERY] {number}",                                 _kill),
    ("USE {word}",                                                       _done),
    ("BEGIN",                                                            _done),
    ("START TRANSACTION",                                                _done),
    ("COMMIT",                                                           _done),
    ("ROLLBACK",                                                         _done),
)
# fmt: on

_CAPTURES: Final[dict[str, tuple[Kind, ...]]] = {
    "{string}": (Kind.STRING,),
    "{number}": (Kind.NUMBER,),
    "{word}": (Kind.WORD, Kind.NAME),
}


def _fit(shape: str, tokens: Sequence[Token]) -> list[Sequence[Token]] | None:
    """What the shape's braces capture, or None if the tokens have another shape."""
    captured: list[Sequence[Token]] = []
    index = 0
    for part in shape.split():
        token = tokens[index] if index < len(tokens) else None
        if part == "{rest}":
            return [*captured, tokens[index:]] if token else None
        if part.startswith("["):
            index += token is not None and any(token.is_word(word) for word in part[1:-1].split("|"))
            continue
        if token is None:
            return None
        if part in _CAPTURES:
            if token.kind not in _CAPTURES[part]:
                return None
            captured.append(tokens[index : index + 1])
        elif not token.is_word(part) and not token.is_symbol(part):
            return None
        index += 1
    return captured if index == len(tokens) else None


def answer_statement(text: str, session: StatementSession, now_s: float) -> Answer:
    """Answer one statement. `now_s`: wall clock, seconds since 1970.

    Raises: StatementRefused for whatever is not understood; nothing was changed then.
    """
    statement = _Statement(text, session, now_s)
    for shape, answer in _SHAPES:
        captured = _fit(shape, statement.tokens)
        if captured is not None:
            return answer(statement, captured)
    raise not_understood(text)
