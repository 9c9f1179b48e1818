"""The relay's configuration: a TOML file checked as a whole, every mistake named with what to write instead.

Secrets are held as SecretStr and never appear in a repr, a log line or a message.
"""

import difflib
import hashlib
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    PrivateAttr,
    SecretStr,
    Tag,
    ValidationError,
)
from pydantic_core import ErrorDetails

from protocol.errors import Malformed
from protocol.position import binlog_number

SyncPolicy = Literal["transaction", "interval", "none"]
PublishPolicy = Literal["written", "synced"]
ViolationPolicy = Literal["warn", "stop"]
Markers = Literal["tbm", "edges", "strip"]

SERVER_ID_MAX: Final = 2**32 - 1
_NATIVE_HASH = re.compile(r"\*[0-9A-Fa-f]{40}")
_SOURCE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake: the key it is about, what is wrong, and what to write instead."""

    key: str
    what: str
    instead: str

    def __str__(self) -> str:
        return f"{self.key}: {self.what}. {self.instead}" if self.instead else f"{self.key}: {self.what}"


class ConfigError(Exception):
    """A configuration that cannot be used, with all its problems. `str()` is ready for a terminal, secrets left out."""

    def __init__(self, path: Path, problems: list[Problem]) -> None:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        super().__init__("\n".join([f"{path}: {count}", *(f"  {problem}" for problem in problems)]))
        self.path = path
        self.problems = problems


class _Wrong(ValueError):
    """A value that is refused, with the two halves of its Problem."""

    def __init__(self, what: str, instead: str) -> None:
        super().__init__(what)
        self.what = what
        self.instead = instead


def _checked_source_name(name: str) -> str:
    # It becomes a directory: a path in it would put the archive outside the archive directory.
    if _SOURCE_NAME.fullmatch(name) is None:
        raise _Wrong(
            "this name cannot be a directory of the archive",
            "Use 1 to 64 letters, digits, '_', '-' or '.', not starting with '-' or '.'",
        )
    return name


def _checked_binlog_name(name: str) -> str:
    try:
        binlog_number(name)
    except Malformed:
        raise _Wrong("this is not a binlog file name", 'Write a name such as "mysql-bin.000042", no path') from None
    return name


def _checked_hash(value: SecretStr) -> SecretStr:
    if _NATIVE_HASH.fullmatch(value.get_secret_value()) is None:
        raise _Wrong(
            "this is not a mysql_native_password hash",
            "Write '*' and 40 hexadecimal digits, as SELECT authentication_string FROM mysql.user shows them",
        )
    return value


class _Section(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, hide_input_in_errors=True, populate_by_name=True
    )


Port = Annotated[int, Field(ge=1, le=65535)]
Seconds = Annotated[float, Field(gt=0, le=86400, allow_inf_nan=False)]
PathText = Annotated[Path, Field(strict=False)]
NonEmpty = Annotated[str, Field(min_length=1)]


class StartPosition(_Section):
    """Where the first run begins: a binlog of the source and an offset at a transaction boundary."""

    file: Annotated[str, AfterValidator(_checked_binlog_name)]
    position: Annotated[int, Field(ge=4)] = 4


def _start_tag(value: object) -> str:
    return "place" if isinstance(value, (dict, StartPosition)) else "word"


Start = Annotated[
    Annotated[Literal["earliest", "latest"], Tag("word")] | Annotated[StartPosition, Tag("place")],
    Discriminator(_start_tag),
]


def _secret_text(password: SecretStr | None, password_file: Path | None, password_env: str | None) -> str | None:
    """The password from whichever form was given.

    Raises: OSError for a file that cannot be read, KeyError for a variable that is not set.
    """
    if password is not None:
        return password.get_secret_value()
    if password_file is not None:
        # Editors end a file with a newline; no other white space is taken off, passwords may hold it.
        return password_file.read_text(encoding="utf-8").removesuffix("\n").removesuffix("\r")
    if password_env is not None:
        return os.environ[password_env]
    return None


class ServerSource(_Section):
    """A running source that the relay attaches to as a replica."""

    kind: Literal["server"] = "server"
    name: Annotated[str, AfterValidator(_checked_source_name)] = "source"
    host: NonEmpty
    port: Port = 3306
    user: NonEmpty
    password: SecretStr | None = None
    password_file: PathText | None = None
    password_env: NonEmpty | None = None
    start: Start = "earliest"
    server_id: Annotated[int, Field(ge=1, le=SERVER_ID_MAX)]
    heartbeat_period_s: Annotated[float, Field(ge=0.1, le=3600, allow_inf_nan=False)] = 10.0
    connect_timeout_s: Seconds = 10.0
    on_violation: ViolationPolicy = "warn"

    def password_text(self) -> str:
        """The password in clear, read from its file or variable now.

        Raises: OSError for a file that cannot be read, KeyError for a variable that is not set.
        """
        return _secret_text(self.password, self.password_file, self.password_env) or ""


class DirectorySource(_Section):
    """The binlogs of a source that is gone, or copied from one while they grow."""

    kind: Literal["directory"]
    name: Annotated[str, AfterValidator(_checked_source_name)] = "source"
    path: PathText
    start: Start = "earliest"
    poll_interval_s: Annotated[float, Field(ge=0.001, le=3600, allow_inf_nan=False)] = 0.2
    on_violation: ViolationPolicy = "warn"


Source = Annotated[ServerSource | DirectorySource, Field(discriminator="kind")]


class ArchiveSection(_Section):
    """Where relayed binlogs are kept and when a written byte counts."""

    dir: PathText
    sync: SyncPolicy = "interval"
    publish: PublishPolicy = "written"
    sync_interval_s: Seconds = 1.0


class ListenSection(_Section):
    """Where replicas connect, and how long they may take or wait."""

    host: NonEmpty = "0.0.0.0"
    port: Port = 3307
    position_wait_s: Annotated[float, Field(ge=0, le=86400, allow_inf_nan=False)] = 10.0
    max_connections: Annotated[int, Field(ge=1, le=100_000)] = 500
    handshake_timeout_s: Seconds = 10.0


class Account(_Section):
    """A login for replicas."""

    # 96 bytes: the longest user name of any server that can become a replica (MySQL 9: 32 characters).
    user: Annotated[str, Field(min_length=1, max_length=96)]
    password: SecretStr | None = None
    password_file: PathText | None = None
    password_env: NonEmpty | None = None
    password_hash: Annotated[SecretStr, AfterValidator(_checked_hash)] | None = None
    markers: Markers = "tbm"

    def password_text(self) -> str | None:
        """The password in clear, read from its file or variable now; None when only its hash is known.

        Raises: OSError for a file that cannot be read, KeyError for a variable that is not set.
        """
        return _secret_text(self.password, self.password_file, self.password_env)

    def native_hash(self) -> bytes:
        """SHA1(SHA1(password)), 20 bytes: what mysql_native_password checks against; b"" for an empty password.

        Raises: as `password_text`.
        """
        if self.password_hash is not None:
            return bytes.fromhex(self.password_hash.get_secret_value()[1:])
        text = self.password_text()
        return hashlib.sha1(hashlib.sha1(text.encode()).digest()).digest() if text else b""


class Config(_Section):
    """All of relay.toml. Relative paths in the file were resolved against the file's own directory."""

    source: Source
    archive: ArchiveSection
    listen: ListenSection = ListenSection()
    accounts: Annotated[tuple[Account, ...], Field(alias="account", strict=False)] = ()
    _warnings: tuple[Problem, ...] = PrivateAttr(default=())

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """What works but should be changed."""
        return self._warnings

    @property
    def archive_directory(self) -> Path:
        """The source's own directory in the archive."""
        return self.archive.dir / self.source.name


def load_config(path: Path) -> Config:
    """Reads and checks a configuration file.

    Raises: ConfigError naming every problem at once: an unreadable file, a TOML syntax error with line and column,
    wrong or unknown keys, password forms that are missing, doubled or unreadable.
    """
    data = _read_toml(path)
    problems: list[Problem] = []
    config: Config | None = None
    source = data.get("source")
    if isinstance(source, dict):
        source.setdefault("kind", "server")
    base = path.absolute().parent
    _resolve_paths(data, base)
    try:
        config = Config.model_validate(data)
    except ValidationError as error:
        problems = [_problem(detail, data) for detail in error.errors(include_url=False)]
    warnings: list[Problem] = []
    for key, section, forms in _sections_with_secrets(data):
        found, advice = _secret_problems(key, section, forms, path)
        problems += found
        warnings += advice
    problems += _duplicate_accounts(data)
    problems += _publish_without_sync(data)
    if config is None or problems:
        # The ValidationError is not chained: its text could show what was typed for a password.
        raise ConfigError(path, sorted(problems, key=lambda problem: _section_rank(problem.key))) from None
    if not config.accounts:
        warnings.append(Problem("account", "there is none, so no replica can log in", "Add an [[account]] section"))
    config._warnings = tuple(dict.fromkeys(warnings))
    return config


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        instead = "Name the file with --config; deploy/relay.toml is a sample"
        raise ConfigError(path, [Problem("file", f"cannot be read ({error.strerror})", instead)]) from None
    except UnicodeDecodeError as error:
        where = f"byte {error.start} is not UTF-8"
        raise ConfigError(path, [Problem("file", where, "Save the file as UTF-8 text")]) from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        where, what = _toml_place(str(error), text)
        instead = "TOML wants key = value lines, text in quotes and [section] lines"
        raise ConfigError(path, [Problem(where, what, instead)]) from None


def _toml_place(message: str, text: str) -> tuple[str, str]:
    match = re.fullmatch(r"(?P<what>.*) \(at line (?P<line>\d+), column (?P<column>\d+)\)", message, re.DOTALL)
    if match is not None:
        return f"line {match['line']}, column {match['column']}", match["what"]
    lines = text.split("\n")
    return f"line {len(lines)}, column {len(lines[-1]) + 1}", message.removesuffix(" (at end of document)")


_PATH_KEYS: Final = {"source": ("path", "password_file"), "archive": ("dir",), "account": ("password_file",)}


def _resolve_paths(data: dict[str, Any], base: Path) -> None:
    """Makes relative paths absolute: a service's working directory is no place to depend on."""
    for name, keys in _PATH_KEYS.items():
        value = data.get(name)
        for section in value if isinstance(value, list) else [value]:
            for key in keys:
                if isinstance(section, dict) and isinstance(section.get(key), str) and section[key]:
                    section[key] = str(base / Path(section[key]).expanduser())


def _section_rank(key: str) -> int:
    names = ("file", "source", "archive", "listen", "account")
    return next((rank for rank, name in enumerate(names) if key.startswith(name)), len(names))


_SOURCE_FORMS: Final = ("password", "password_file", "password_env")
_ACCOUNT_FORMS: Final = (*_SOURCE_FORMS, "password_hash")


def _sections_with_secrets(data: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any], tuple[str, ...]]]:
    source = data.get("source")
    if isinstance(source, dict) and source.get("kind") == "server":
        yield "source", source, _SOURCE_FORMS
    accounts = data.get("account")
    for index, account in enumerate(accounts if isinstance(accounts, list) else ()):
        if isinstance(account, dict):
            yield f"account#{index + 1}", account, _ACCOUNT_FORMS


def _secret_problems(
    key: str, section: dict[str, Any], forms: tuple[str, ...], config_path: Path
) -> tuple[list[Problem], list[Problem]]:
    """Problems and warnings about a section's password, checked on the raw text so that other mistakes hide nothing."""
    problems: list[Problem] = []
    warnings: list[Problem] = []
    given = [form for form in forms if form in section]
    choice = ", ".join(forms[:-1]) + " or " + forms[-1]
    if not given:
        problems.append(Problem(f"{key}.password", "is missing", f"Write one of {choice}"))
    elif len(given) > 1:
        problems.append(Problem(f"{key}.password", f"is given {len(given)} times ({', '.join(given)})", "Keep one"))
    for form in ("password", "password_hash"):
        if form in given and _readable_by_all(config_path):
            warnings.append(_open_file("file", config_path))
    file = section.get("password_file")
    if isinstance(file, str):
        try:
            with open(file, "rb") as opened:
                opened.read(1)
        except OSError as error:
            what = f"{file} cannot be read ({error.strerror})"
            problems.append(Problem(f"{key}.password_file", what, "Create it, or give this user read permission"))
        else:
            if _readable_by_all(Path(file)):
                warnings.append(_open_file(f"{key}.password_file", Path(file)))
    variable = section.get("password_env")
    if isinstance(variable, str) and variable not in os.environ:
        problems.append(
            Problem(f"{key}.password_env", f"the environment has no variable {variable}", "Set it before starting")
        )
    return problems, warnings


def _readable_by_all(path: Path) -> bool:
    try:
        return bool(path.stat().st_mode & stat.S_IROTH)
    except OSError:
        return False


def _open_file(key: str, path: Path) -> Problem:
    return Problem(key, f"{path} holds a secret and every user can read it", f"Run: chmod o-rwx {path}")


def _duplicate_accounts(data: Mapping[str, Any]) -> list[Problem]:
    accounts = data.get("account")
    first: dict[str, int] = {}
    problems = []
    for index, account in enumerate(accounts if isinstance(accounts, list) else (), start=1):
        user = account.get("user") if isinstance(account, dict) else None
        if not isinstance(user, str):
            continue
        if user in first:
            what = f'"{user}" is also the user of account#{first[user]}'
            problems.append(Problem(f"account#{index}.user", what, "Give every account its own user"))
        else:
            first[user] = index
    return problems


def _publish_without_sync(data: Mapping[str, Any]) -> list[Problem]:
    archive = data.get("archive")
    if isinstance(archive, dict) and archive.get("publish") == "synced" and archive.get("sync") == "none":
        instead = 'Write sync = "transaction" or "interval", or publish = "written"'
        return [Problem("archive.publish", '"synced" with sync = "none" would publish nothing', instead)]
    return []


# --- from pydantic's errors to sentences ---------------------------------------------------------------------------

_SECRET_KEYS: Final = {"password", "password_hash"}
_EXAMPLES: Final = {
    "source": '[source] with kind = "server" or kind = "directory"',
    "source.host": 'host = "127.0.0.1"',
    "source.user": 'user = "repl"',
    "source.server_id": "server_id = 4242, a number no other replica of the source has",
    "source.path": 'path = "/var/backups/binlogs"',
    "archive": '[archive] with dir = "/var/lib/binlog-relay"',
    "archive.dir": 'dir = "/var/lib/binlog-relay"',
    "source.start": '"earliest", "latest" or { file = "mysql-bin.000042", position = 4 }',
    "source.start.file": 'file = "mysql-bin.000042"',
    "account.user": 'user = "replica"',
}
_TYPE_WORDS: Final = {
    "int_type": "a whole number without quotes",
    "float_type": "a number without quotes",
    "string_type": "text in quotes",
    "path_type": "a path in quotes",
    "bool_type": "true or false",
    "model_type": "a section",
    "model_attributes_type": "a section",
    "tuple_type": "one [[account]] section for each account",
    "finite_number": "a finite number",
}


def _problem(detail: ErrorDetails, data: Mapping[str, Any]) -> Problem:
    loc = _without_tags(detail["loc"], data)
    key = _key_path(loc)
    plain = ".".join(part for part in loc if isinstance(part, str))
    kind = detail["type"]
    context = detail.get("ctx", {})
    shown = _shown(detail.get("input"), loc)
    if kind == "extra_forbidden":
        return _unknown_key(key, loc, data)
    if kind == "missing":
        return Problem(key, "is missing", f"Write {_EXAMPLES.get(plain, 'a value for it')}")
    if kind == "union_tag_invalid":
        return Problem(f"{key}.kind", f"there is no kind {_shown_tag(context)}", 'Write "server" or "directory"')
    if kind == "literal_error":
        instead = _EXAMPLES.get(plain) or str(context.get("expected", "")).replace("'", '"')
        return Problem(key, f"has no choice {shown}", f"Write {instead}")
    if kind == "value_error" and isinstance(context.get("error"), _Wrong):
        wrong: _Wrong = context["error"]
        return Problem(key, f"{shown}: {wrong.what}" if shown else wrong.what, wrong.instead)
    if kind in ("greater_than_equal", "less_than_equal", "greater_than", "less_than"):
        return Problem(key, f"{shown} is out of range", f"Write a number {_range(plain)}")
    if kind == "string_too_short":
        return Problem(key, "is empty", f"Write {_EXAMPLES.get(plain, 'a text')}")
    if kind == "string_too_long":
        return Problem(key, "is too long", f"At most {context.get('max_length')} characters")
    if kind in _TYPE_WORDS:
        return Problem(
            key, f"{shown} is of the wrong type" if shown else "is of the wrong type", f"Write {_TYPE_WORDS[kind]}"
        )
    return Problem(key, detail["msg"] if not _is_secret(loc) else "is not usable", "")


def _without_tags(loc: tuple[int | str, ...], data: Mapping[str, Any]) -> tuple[int | str, ...]:
    """Drops the tags of unions, which pydantic puts between the keys."""
    if len(loc) >= 2 and loc[0] == "source" and loc[1] in ("server", "directory"):
        loc = (loc[0], *loc[2:])
    if len(loc) >= 3 and loc[:2] == ("source", "start") and loc[2] in ("word", "place"):
        loc = (*loc[:2], *loc[3:])
    return loc


def _key_path(loc: tuple[int | str, ...]) -> str:
    text = ""
    for part in loc:
        if isinstance(part, int):
            text += f"#{part + 1}"
        else:
            text += f".{part}" if text else part
    return text


def _is_secret(loc: tuple[int | str, ...]) -> bool:
    return bool(loc) and loc[-1] in _SECRET_KEYS


def _shown(value: object, loc: tuple[int | str, ...]) -> str:
    """What was typed, short, as TOML writes it; nothing for secrets and for whole sections."""
    if _is_secret(loc) or isinstance(value, (dict, list, SecretStr)) or value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = f'"{value}"' if isinstance(value, (str, Path)) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _shown_tag(context: Mapping[str, Any]) -> str:
    return f'"{str(context.get("tag", ""))[:40]}"'


def _model_at(loc: tuple[int | str, ...], data: Mapping[str, Any]) -> type[BaseModel]:
    """The section that the last part of `loc` would be a key of."""
    names = tuple(part for part in loc[:-1] if isinstance(part, str))
    source = data.get("source")
    kind = source.get("kind") if isinstance(source, dict) else None
    models: dict[tuple[str, ...], type[BaseModel]] = {
        ("source",): DirectorySource if kind == "directory" else ServerSource,
        ("source", "start"): StartPosition,
        ("archive",): ArchiveSection,
        ("listen",): ListenSection,
        ("account",): Account,
    }
    return models.get(names, Config)


def _keys(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def _unknown_key(key: str, loc: tuple[int | str, ...], data: Mapping[str, Any]) -> Problem:
    known = _keys(_model_at(loc, data))
    near = difflib.get_close_matches(str(loc[-1]), known, n=1, cutoff=0.6)
    if near:
        return Problem(key, "there is no such key", f"Did you mean {near[0]}?")
    # A key in the wrong section is the other common mistake.
    homes: dict[str, type[BaseModel]] = {
        "source": ServerSource,
        "archive": ArchiveSection,
        "listen": ListenSection,
        "account": Account,
    }
    home = next((name for name, model in homes.items() if loc[-1] in _keys(model)), None)
    if home is not None and home != loc[0]:
        return Problem(key, "there is no such key here", f"It belongs to [{home}]")
    return Problem(key, "there is no such key", f"Known here: {', '.join(known)}")


def _range(plain: str) -> str:
    """The allowed range of a number, from the model itself."""
    models: dict[str, type[BaseModel]] = {"source": ServerSource, "archive": ArchiveSection, "listen": ListenSection}
    section, _, name = plain.rpartition(".")
    model: type[BaseModel] | None = StartPosition if section == "source.start" else models.get(section)
    if name == "poll_interval_s":
        model = DirectorySource
    low: object = None
    high: object = None
    above: object = None
    field = model.model_fields.get(name) if model is not None else None
    for item in field.metadata if field is not None else ():
        low = getattr(item, "ge", low)
        high = getattr(item, "le", high)
        above = getattr(item, "gt", above)
    if above is not None:
        return f"above {above} and at most {high}"
    return f"from {low}" if high is None else f"from {low} to {high}"
