"""The relay's configuration: a TOML file checked as a whole, every mistake named with what to write instead.

Secrets are held as SecretStr and never appear in a repr, a log line or a message.
"""

import contextlib
import datetime
import difflib
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args

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

from protocol.auth.authenticator import Plugin
from protocol.auth.credentials import Credentials
from protocol.auth.host_pattern import HostPattern
from protocol.errors import Malformed
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import GtidPosition
from protocol.handshake import plain_version
from protocol.position import binlog_number
from relay.certificates import CertificateError, ServerTls, load_server_tls

SyncPolicy = Literal["transaction", "interval", "none"]
PublishPolicy = Literal["written", "synced"]
ViolationPolicy = Literal["warn", "stop"]
Markers = Literal["tbm", "edges", "strip"]
AckPolicy = Literal["none", "synced"]
SslMode = Literal["disabled", "preferred", "required", "verify_ca", "verify_identity"]
PresentAs = Literal["source", "relay"]

SERVER_ID_MAX: Final = 2**32 - 1
_VERSION = re.compile(r"(\d{1,2})\.(\d{1,4})(?:\.(\d{1,4}))?(?![\d.])")
_LONGEST_VERSION: Final = 59
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


def _checked_version(version: str) -> str:
    """What every generation of replicas accepts in a greeting.

    MySQL up to 5.7 refuses a first digit below 3, later ones a major below 5; before 5.6.2 there were no checksums, and
    a MariaDB replica stops where such a source sends format descriptions that know of them. The longest version of a
    server has 59 characters. MariaDB's own greets with 5.5.5- where its replicas need that.
    """
    plain = plain_version(version)
    match = _VERSION.match(plain)
    if match is None or len(version) > _LONGEST_VERSION or not (version.isascii() and version.isprintable()):
        raise _Wrong(
            "this is not a server's version",
            'Write one such as "5.7.44-log" or "10.11.6-MariaDB-log", 59 characters at most',
        )
    newest = 99 if "mariadb" in plain.lower() else 9
    numbers = tuple(int(part) for part in match.groups(default="0"))
    if numbers < (5, 6, 2) or numbers[0] > newest:
        raise _Wrong(
            f"not every replica takes a source of version {match[0]}",
            'Write a version from 5.6.2 to 9; only one with "MariaDB" in it may begin with 10 or more',
        )
    return version


def _checked_hash(value: SecretStr) -> SecretStr:
    try:
        Credentials.from_stored(value.get_secret_value())
    except ValueError:
        raise _Wrong(
            "this is no hash that a server stores",
            "Write '*' and 40 hexadecimal digits (mysql_native_password), '$A$005$' and what follows "
            "(caching_sha2_password) or 43 characters of base64 (ed25519), as mysql.user shows them, or 0x and the "
            "hexadecimal digits that SELECT HEX(authentication_string) FROM mysql.user shows",
        ) from None
    return value


def _checked_host(text: str) -> str:
    try:
        HostPattern.parse(text)
    except ValueError as error:
        raise _Wrong(
            str(error), 'Write "%", an address, "10.0.0.0/24", "10.0.0.0/255.255.255.0" or a pattern like "10.0.%"'
        ) from None
    return text


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


def _checked_gtids(text: str) -> str:
    for read in (GtidSet.from_text, GtidPosition.from_text):
        with contextlib.suppress(Malformed):
            if read(text):
                return text
    raise _Wrong(
        "these are no GTIDs that a server writes",
        'Write what the newest backup says, such as "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-77" (MySQL) or "0-1-77" (MariaDB)',
    )


class StartGtid(_Section):
    """Where the first run begins: the source's file in which these transactions are not all contained before it."""

    gtid: Annotated[str, AfterValidator(_checked_gtids)]


def _start_tag(value: object) -> str:
    if isinstance(value, StartGtid) or (isinstance(value, dict) and "gtid" in value):
        return "gtid"
    return "place" if isinstance(value, (dict, StartPosition)) else "word"


Start = Annotated[
    Annotated[Literal["earliest", "latest"], Tag("word")]
    | Annotated[StartPosition, Tag("place")]
    | Annotated[StartGtid, Tag("gtid")],
    Discriminator(_start_tag),
]


def _without_gtid(start: Start) -> Start:
    if isinstance(start, StartGtid):
        raise _Wrong("only a running source can be asked by GTID", 'Write start = { file = "mysql-bin.000042" }')
    return start


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
    ssl_mode: SslMode = "preferred"
    ssl_ca: PathText | None = None
    ssl_cert: PathText | None = None
    ssl_key: PathText | None = None
    ack: AckPolicy = "none"
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
    start: Annotated[Start, AfterValidator(_without_gtid)] = "earliest"
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
    present_as: PresentAs = "source"
    version: Annotated[str, AfterValidator(_checked_version)] | None = None
    demand_acks: bool = False
    tls_cert: PathText | None = None
    tls_key: PathText | None = None
    tls_client_ca: PathText | None = None
    max_login_failures: Annotated[int, Field(ge=0, le=1_000_000)] = 20
    login_block_s: Seconds = 60.0


class Account(_Section):
    """A login for replicas."""

    # 96 bytes: the longest user name of any server that can become a replica (MySQL 9: 32 characters).
    user: Annotated[str, Field(min_length=1, max_length=96)]
    password: SecretStr | None = None
    password_file: PathText | None = None
    password_env: NonEmpty | None = None
    password_hash: Annotated[SecretStr, AfterValidator(_checked_hash)] | None = None
    plugin: Plugin | None = None
    host: Annotated[NonEmpty, AfterValidator(_checked_host)] = "%"
    markers: Markers = "tbm"
    admin: bool = False
    require_tls: bool = False
    require_client_cert: bool = False

    def password_text(self) -> str | None:
        """The password in clear, read from its file or variable now; None when only its hash is known.

        Raises: OSError for a file that cannot be read, KeyError for a variable that is not set.
        """
        return _secret_text(self.password, self.password_file, self.password_env)

    def credentials(self) -> Credentials:
        """What a login is checked with.

        Raises: as `password_text`.
        """
        if self.password_hash is not None:
            return Credentials.from_stored(self.password_hash.get_secret_value())
        return Credentials.from_password(self.password_text() or "")


class Config(_Section):
    """All of relay.toml. Relative paths in the file were resolved against the file's own directory."""

    source: Source
    archive: ArchiveSection
    listen: ListenSection = ListenSection()
    accounts: Annotated[tuple[Account, ...], Field(alias="account", strict=False)] = ()
    _warnings: tuple[Problem, ...] = PrivateAttr(default=())
    _server_tls: ServerTls | None = PrivateAttr(default=None)

    @property
    def server_tls(self) -> ServerTls | None:
        """What replicas are offered, made from the files as they were when the configuration was read; None: no TLS."""
        return self._server_tls

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
    problems += _account_problems(data)
    server_tls, found, advice = _server_tls(data)
    problems += found
    warnings += advice
    problems += _publish_without_sync(data)
    tls_problems, tls_advice = _source_tls_problems(data)
    problems += tls_problems
    warnings += tls_advice
    problems += _presented_without_id(data)
    if config is None or problems:
        # The ValidationError is not chained: its text could show what was typed for a password.
        raise ConfigError(path, sorted(problems, key=lambda problem: _section_rank(problem.key))) from None
    for number, account in enumerate(config.accounts, start=1):
        if account.password_text() == "":
            what = "is empty: whoever knows the user's name logs in"
            warnings.append(Problem(f"account#{number}.password", what, "Give it one"))
    if not config.accounts:
        warnings.append(Problem("account", "there is none, so no replica can log in", "Add an [[account]] section"))
    config._server_tls = server_tls
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


_PATH_KEYS: Final = {
    "source": ("path", "password_file", "ssl_ca", "ssl_cert", "ssl_key"),
    "archive": ("dir",),
    "listen": ("tls_cert", "tls_key", "tls_client_ca"),
    "account": ("password_file",),
}


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
            Path(file).read_text(encoding="utf-8")
        except OSError as error:
            what = f"{file} cannot be read ({error.strerror})"
            problems.append(Problem(f"{key}.password_file", what, "Create it, or give this user read permission"))
        except UnicodeDecodeError:
            problems.append(Problem(f"{key}.password_file", f"{file} is not UTF-8 text", "Write the password into it"))
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


def _account_problems(data: Mapping[str, Any]) -> list[Problem]:
    """Accounts that shadow each other, and plugins that cannot check what there is."""
    accounts = data.get("account")
    first: dict[tuple[str, str], int] = {}
    problems = []
    for index, account in enumerate(accounts if isinstance(accounts, list) else (), start=1):
        if not isinstance(account, dict):
            continue
        user, host = account.get("user"), account.get("host", "%")
        if isinstance(user, str) and isinstance(host, str):
            identity = (user, _host_identity(host))
            if identity in first:
                what = f'"{user}" at "{host}" is also account#{first[identity]}'
                instead = "Give each of them a host of its own, or keep one"
                problems.append(Problem(f"account#{index}.user", what, instead))
            first.setdefault(identity, index)
        problems += _plugin_problems(f"account#{index}.plugin", account)
    return problems


def _host_identity(host: str) -> str:
    try:
        return HostPattern.parse(host).identity
    except ValueError:
        return host


def _plugin_problems(key: str, account: Mapping[str, Any]) -> list[Problem]:
    plugin, stored = account.get("plugin"), account.get("password_hash")
    if not isinstance(plugin, str) or not isinstance(stored, str) or plugin not in get_args(Plugin):
        return []
    try:
        able = Credentials.from_stored(stored).plugins
    except ValueError:
        return []
    if plugin in able:
        return []
    return [Problem(key, f"{plugin} cannot check a hash of {able[0]}", f'Write plugin = "{able[0]}", or leave it out')]


def _presented_without_id(data: Mapping[str, Any]) -> list[Problem]:
    source, listen = data.get("source"), data.get("listen")
    if not isinstance(source, dict) or not isinstance(listen, dict):
        return []
    if listen.get("present_as") != "relay" or source.get("kind") != "directory":
        return []
    what = 'is "relay", and a relay of a directory has no server_id of its own to show'
    return [Problem("listen.present_as", what, 'Write "source", or leave it out')]


_TLS_FILES: Final = ("tls_cert", "tls_key", "tls_client_ca")


def _server_tls(data: Mapping[str, Any]) -> tuple[ServerTls | None, list[Problem], list[Problem]]:
    """The TLS that replicas are offered; problems and warnings about it."""
    listen = data.get("listen")
    given = {
        key: Path(listen[key]) for key in _TLS_FILES if isinstance(listen, dict) and isinstance(listen.get(key), str)
    }
    problems = _accounts_without_tls(data, given)
    certificate, key = given.get("tls_cert"), given.get("tls_key")
    if certificate is None or key is None:
        if given:
            missing = "tls_cert" if certificate is None else "tls_key"
            what = f"is missing, and {next(iter(given))} is given"
            problems.append(Problem(f"listen.{missing}", what, "TLS needs tls_cert and tls_key"))
        return None, problems, []
    warnings = [_open_file("listen.tls_key", key)] if _readable_by_all(key) else []
    try:
        tls = load_server_tls(certificate, key, given.get("tls_client_ca"))
    except CertificateError as error:
        return None, [*problems, Problem(f"listen.tls_{error.part}", error.what, error.instead)], warnings
    trouble = tls.trouble(datetime.datetime.now(datetime.UTC))
    if trouble is not None:
        instead = "Replicas that check certificates refuse it: have it renewed, then send SIGHUP"
        warnings.append(Problem("listen.tls_cert", f"{certificate} {trouble}", instead))
    return tls, problems, warnings


def _accounts_without_tls(data: Mapping[str, Any], given: Mapping[str, Path]) -> list[Problem]:
    """Accounts that require what is not offered."""
    accounts = data.get("account")
    problems = []
    for index, account in enumerate(accounts if isinstance(accounts, list) else (), start=1):
        if not isinstance(account, dict):
            continue
        if account.get("require_tls") is True and not given.keys() & {"tls_cert", "tls_key"}:
            what = "nobody could log in: no TLS is offered"
            problems.append(Problem(f"account#{index}.require_tls", what, "Give listen.tls_cert and listen.tls_key"))
        if account.get("require_client_cert") is True and "tls_client_ca" not in given:
            what = "nobody could log in: no client's certificate is trusted"
            instead = "Give listen.tls_client_ca, the authority that signs the clients' certificates"
            problems.append(Problem(f"account#{index}.require_client_cert", what, instead))
    return problems


def _publish_without_sync(data: Mapping[str, Any]) -> list[Problem]:
    archive = data.get("archive")
    if isinstance(archive, dict) and archive.get("publish") == "synced" and archive.get("sync") == "none":
        instead = 'Write sync = "transaction" or "interval", or publish = "written"'
        return [Problem("archive.publish", '"synced" with sync = "none" would publish nothing', instead)]
    return []


_SSL_FILES: Final = ("ssl_ca", "ssl_cert", "ssl_key")


def _source_tls_problems(data: Mapping[str, Any]) -> tuple[list[Problem], list[Problem]]:
    """Problems and warnings about the way to the source: files that cannot be read, options that do not go together."""
    source = data.get("source")
    if not isinstance(source, dict) or source.get("kind") != "server":
        return [], []
    problems: list[Problem] = []
    warnings: list[Problem] = []
    mode = source.get("ssl_mode", "preferred")
    given = [key for key in _SSL_FILES if key in source]
    for key in given:
        file = source[key]
        try:
            with open(str(file), "rb") as opened:
                opened.read(1)
        except OSError as error:
            what = f"{file} cannot be read ({error.strerror})"
            problems.append(Problem(f"source.{key}", what, "Name a PEM file that this user can read"))
        else:
            if key == "ssl_key" and _readable_by_all(Path(str(file))):
                warnings.append(_open_file("source.ssl_key", Path(str(file))))
    for one, other in (("ssl_cert", "ssl_key"), ("ssl_key", "ssl_cert")):
        if one in source and other not in source:
            problems.append(Problem(f"source.{other}", f"is missing, and {one} is given", "Write both, or none"))
    if mode == "disabled" and given:
        warnings.append(Problem(f"source.{given[0]}", 'is not used: ssl_mode is "disabled"', "Take one of them out"))
    elif "ssl_ca" in given and mode in ("preferred", "required"):
        what = f'is not used: ssl_mode "{mode}" checks no certificate'
        warnings.append(Problem("source.ssl_ca", what, 'Write ssl_mode = "verify_ca" or "verify_identity"'))
    return problems, warnings


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
    "source.start": '"earliest", "latest", { file = "mysql-bin.000042", position = 4 } or { gtid = "…" }',
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
    if len(loc) >= 3 and loc[:2] == ("source", "start") and loc[2] in ("word", "place", "gtid"):
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


def _started(source: object) -> object:
    return source.get("start") if isinstance(source, dict) else None


def _model_at(loc: tuple[int | str, ...], data: Mapping[str, Any]) -> type[BaseModel]:
    """The section that the last part of `loc` would be a key of."""
    names = tuple(part for part in loc[:-1] if isinstance(part, str))
    source = data.get("source")
    kind = source.get("kind") if isinstance(source, dict) else None
    models: dict[tuple[str, ...], type[BaseModel]] = {
        ("source",): DirectorySource if kind == "directory" else ServerSource,
        ("source", "start"): StartGtid if _start_tag(_started(source)) == "gtid" else StartPosition,
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
