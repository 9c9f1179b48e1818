"""The text of relay.toml: it is read, its relative paths made absolute, and walked before anything in it was checked."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from relay.config.text.problems import ConfigError, Problem
from relay.config.text.source_list import split_sources


def read_toml(path: Path, sample: str = "deploy/relay.toml is a sample") -> dict[str, Any]:
    """Return the file as data; `source.kind` filled in, relative paths resolved against the file's own directory. `sample`: the place
    of a sample.

    Raises: ConfigError.
    """
    data = _parsed(path, sample)
    sources = data.get("source")
    for source in sources if isinstance(sources, list) else [sources]:
        if isinstance(source, dict):
            source.setdefault("kind", "server")
    _resolve_paths(data, path.absolute().parent)
    split_sources(data)
    return data


def _parsed(path: Path, sample: str) -> dict[str, Any]:
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        instead = f"Name the file with --config; {sample}"
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


SERVER_FILES: Final = ("ssl_ca", "ssl_cert", "ssl_key", "public_key")
"""The path keys of a section that names a server that the relay logs in to."""
_PATH_KEYS: Final = {
    "source": ("path", "password_file", *SERVER_FILES),
    "archive": ("dir",),
    "listen": ("tls_cert", "tls_key", "tls_client_ca"),
    "http": ("tls_cert", "tls_key", "token_file"),
    "account": ("password_file",),
    "replica": ("password_file", *SERVER_FILES),
}
_ARCHIVE_PATH_KEYS: Final = {"bucket": ("secret_key_file", "credentials_file"), "encryption": ("file",)}
"""The path keys of sections in [archive]."""


def _resolve_paths(data: dict[str, Any], base: Path) -> None:
    """Make relative paths absolute: a service's working directory is nothing to depend on."""
    for name, keys in _PATH_KEYS.items():
        value = data.get(name)
        for section in value if isinstance(value, list) else [value]:
            for key in keys:
                if isinstance(section, dict) and isinstance(section.get(key), str) and section[key]:
                    section[key] = str(base / Path(section[key]).expanduser())
    feed = data.get("feed")
    source = feed.get("source") if isinstance(feed, dict) else None
    for key in ("password_file", *SERVER_FILES):
        if isinstance(source, dict) and isinstance(source.get(key), str) and source[key]:
            source[key] = str(base / Path(source[key]).expanduser())
    archive = data.get("archive")
    for name, keys in _ARCHIVE_PATH_KEYS.items():
        section = archive.get(name) if isinstance(archive, dict) else None
        inner = section.get("key") if isinstance(section, dict) and name == "encryption" else section
        for table in inner if isinstance(inner, list) else [inner]:
            for key in keys:
                if isinstance(table, dict) and isinstance(table.get(key), str) and table[key]:
                    table[key] = str(base / Path(table[key]).expanduser())


def accounts_in(data: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the [[account]] sections that are sections, each with the key that a message names it by."""
    accounts = data.get("account")
    for number, account in enumerate(accounts if isinstance(accounts, list) else (), start=1):
        if isinstance(account, dict):
            yield f"account#{number}", account


def replicas_in(data: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the [[replica]] sections that are sections, each with the key that a message names it by."""
    replicas = data.get("replica")
    for number, replica in enumerate(replicas if isinstance(replicas, list) else (), start=1):
        if isinstance(replica, dict):
            yield f"replica#{number}", replica


def views_in(data: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the [[view]] sections that are sections, each with the key that a message names it by."""
    views = data.get("view")
    for number, view in enumerate(views if isinstance(views, list) else (), start=1):
        if isinstance(view, dict):
            yield f"view#{number}", view
