"""Why a MariaDB's statement cannot be kept for what it ran under."""

from typing import Final, NoReturn

from protocol.binlog.statement_text import one_line
from relay.view.rules.group import CannotBeKept, StopReason
from relay.view.rules.mariadb.status.source_collations import SOURCE_COLLATIONS
from relay.view.rules.mariadb.status.target_names import TARGET_NAMES

_UNKNOWN_COLLATION: Final = 22
_NO_SUCH_COLLATION: Final = 1273
_CORRUPT_EVENT: Final = 1594
_SILENT_FROM: Final = 2048
_SKIP: Final = "or skip the group and do by hand on the replicas what it does"
_ROWS: Final = "let the source write rows (binlog_format=ROW)"


def stop(name: str, text: str, error: int, advice: str) -> NoReturn:
    """Raises: CannotBeKept."""
    raise CannotBeKept(StopReason(name, text, error, advice))


def shown_collation(number: int) -> str:
    """With its name, where it has one."""
    found = SOURCE_COLLATIONS.get(number)
    return f"{number} ({found.name})" if found is not None else f"number {number}"


def collation_missing(number: int, title: str) -> NoReturn:
    """Nothing of the replicas' stands for the source's collation."""
    found = SOURCE_COLLATIONS.get(number)
    if found is None:
        advice = f"use a newer binlog-relay, {_SKIP}"
    elif found.is_nopad:
        base = TARGET_NAMES.get(found.number - 1024, f"{found.charset}_bin")
        advice = (
            f'say in the view\'s `collations` which to take, such as "{found.name}" = "{base}", if no key has texts that differ in '
            f"spaces at their end alone: {title} takes them for equal; {_SKIP}"
        )
    else:
        advice = f"say in the view's `collations` which to take; {_SKIP}"
    stop(
        "collation_not_in_target",
        f"{title} has no collation that stands for {shown_collation(number)}",
        0 if number >= _SILENT_FROM else _UNKNOWN_COLLATION,
        advice,
    )


def collation_mapped_wrong(number: int, chosen: int, title: str) -> NoReturn:
    """`collations` names one that there is not, or of another character set."""
    name = TARGET_NAMES.get(chosen)
    what = f"is of another character set ({name})" if name else f"{title} does not have"
    stop(
        "collation_not_in_target",
        f"the view's `collations` have {chosen} for {shown_collation(number)}, which {what}",
        _UNKNOWN_COLLATION,
        f"name one of {title} with the same character set, and make the view anew",
    )


def collation_name_unknown(name: str, title: str) -> NoReturn:
    """A statement names a collation that no MariaDB is known to have, or one of which the character set cannot be told."""
    stop(
        "collation_not_in_target",
        f"the statement names the collation {name[:80]}, and which one of {title} stands for it cannot be told",
        _NO_SUCH_COLLATION,
        f"name it at the source with its character set in front, such as utf8mb4_uca1400_ai_ci; {_SKIP}",
    )


def charset_unknown(charset: str, title: str) -> NoReturn:
    """A statement names a character set that no MariaDB is known to have."""
    stop(
        "collation_not_in_target",
        f"the statement names the character set {charset[:80]}, and which collation of {title} is its default cannot be told",
        _NO_SUCH_COLLATION,
        f"name the collation in the statement; {_SKIP}",
    )


def variable_unknown(code: int, text: bytes) -> NoReturn:
    """A status variable that no MariaDB is known to write: servers pass over it and all that is behind it, without a word."""
    stop(
        "status_variable_unknown",
        f"status variable {code} of this is not known: {one_line(text, 120)}",
        0,
        f"use a newer binlog-relay, {_SKIP}",
    )


def status_damaged(why: str, text: bytes) -> NoReturn:
    """What the statement ran under cannot be read."""
    stop(
        "statement_not_readable",
        f"the status variables of this are damaged ({why}): {one_line(text, 120)}",
        _CORRUPT_EVENT,
        "`binlog-relay archive verify --deep` tells more; fetch the file from the source again",
    )


def flags_unknown(flags: int, text: bytes) -> NoReturn:
    """Options of the connection that no MariaDB is known to write."""
    stop(
        "status_variable_unknown",
        f"flags 0x{flags:08x} of this are not known: {one_line(text, 120)}",
        0,
        f"use a newer binlog-relay, {_SKIP}",
    )


def mode_missing(mode: str, effect: str, text: bytes, title: str) -> NoReturn:
    """The statement means something else without that mode."""
    stop(
        "sql_mode_not_in_target",
        f"{title} has no sql_mode {mode}, {effect}: {one_line(text, 120)}",
        0,
        f"take it out of sql_mode at the source; {_ROWS}; {_SKIP}",
    )


def locale_missing(number: int, text: bytes, title: str) -> NoReturn:
    """Names of months and days that the replicas do not know."""
    stop(
        "status_variable_unknown",
        f"{title} has no lc_time_names of number {number}: {one_line(text, 120)}",
        _CORRUPT_EVENT,
        f"SET lc_time_names to another at the source; {_SKIP}",
    )


def variable_damaged(name: bytes) -> NoReturn:
    """A User_var event that is not as long as it says."""
    stop(
        "group_malformed",
        f"the event of the user variable @{one_line(name, 80)} is cut",
        _CORRUPT_EVENT,
        "`binlog-relay archive verify --deep` tells more; fetch the file from the source again",
    )
