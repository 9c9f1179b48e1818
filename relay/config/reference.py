"""docs/CONFIGURATION.md, generated from the model: every key with its type, unit, default, meaning and an example.

    python -m relay.config.reference > docs/CONFIGURATION.md

The meaning is the text under each key in `relay.config.sections` and the modules next to it. It is read from the source text, here
only: the running relay has no use for it.
"""

import ast
import inspect
import json
import re
import sys
from typing import Any, Final, NamedTuple

from pydantic import BaseModel

from relay.config.http_section import HttpSection
from relay.config.memory_section import MemorySection
from relay.config.replica_section import ReplicaSection
from relay.config.retention_section import RetentionSection
from relay.config.sections import (
    Account,
    ArchiveSection,
    DirectorySource,
    FailoverSection,
    ListenSection,
    ServerSource,
    StartGtid,
    StartPosition,
    ViewSection,
    ViewStartPlace,
)
from relay.config.tiers_section import BucketSection, EncryptionKey, EncryptionSection, MirrorSection, TiersSection
from relay.config.toml_section import TomlSection

_EXAMPLE: Final = re.compile(r"(?P<meaning>.*) Example: `(?P<example>[^`]+)`", re.DOTALL)

_HEAD: Final = """\
# Configuration

<!-- Written by python -m relay.config.reference from the sections in relay/config: change the texts there. -->

The relay reads one file, `relay.toml`, in [TOML](https://toml.io). Texts stand in quotes, numbers and `true` and `false` do not.
A complete sample, with all defaults: [deploy/relay.toml](../deploy/relay.toml). Check yours before you start the relay:

    binlog-relay check-config --config relay.toml

It names all mistakes at once, with the key and what to write. A key that does not exist is a mistake, too.

- A relative path is taken from the directory of `relay.toml`.
- Keep passwords in files of their own (`password_file`), which only the user of the relay can read.
- `SIGHUP` makes the running relay read the file again. It takes over the accounts, `listen.tls_cert`, `listen.tls_key`,
  `listen.tls_client_ca`, `listen.max_login_failures` and `listen.login_block_s`; `http.tls_cert`, `http.tls_key`, `http.hosts` and
  the token of `[http]`; `[retention]`; `[[replica]]`; and user and password of each source, for connections from now on, unless
  `CHANGE MASTER TO` has set others. No stream is disturbed. Everything else needs a restart;
  the line `reloaded` in the log names it. If the file has a mistake, nothing is changed (`reload_refused` in the log).

The shortest useful file:

    [source]
    host = "db-old.example"
    user = "repl"
    password_file = "/etc/binlog-relay/source.password"
    server_id = 4242

    [archive]
    dir = "/var/lib/binlog-relay"

    [[account]]
    user = "replica"
    password_file = "/etc/binlog-relay/replica.password"
"""


class _ReferencePart(NamedTuple):
    title: str
    note: str
    prefix: str
    suffix: str
    model: type[BaseModel]


_PARTS: Final = (
    _ReferencePart(
        "[source]: a running server",
        "Required: this one, or the one for a directory. Write `[[source]]`, more than once, to name other servers that may take "
        "its place, in order of preference ([CHANGE-OF-SOURCE.md](CHANGE-OF-SOURCE.md)). What the others leave out is as in the "
        "first; `kind` and `name` must be the same for all.",
        "source.",
        "",
        ServerSource,
    ),
    _ReferencePart(
        "source.start with a file",
        'Instead of `"earliest"` or `"latest"`.',
        "source.start.",
        "",
        StartPosition,
    ),
    _ReferencePart(
        "source.start with GTIDs",
        "Only for a running server: the relay asks it for the file.",
        "source.start.",
        "",
        StartGtid,
    ),
    _ReferencePart(
        "[source]: a directory of binlogs", "In place of the server.", "source.", " of a directory", DirectorySource
    ),
    _ReferencePart(
        "[failover]",
        "May be left out. See [CHANGE-OF-SOURCE.md](CHANGE-OF-SOURCE.md).",
        "failover.",
        "",
        FailoverSection,
    ),
    _ReferencePart("[archive]", "Required. See [ARCHIVE.md](ARCHIVE.md).", "archive.", "", ArchiveSection),
    _ReferencePart(
        "[archive.bucket]",
        "May be left out. See [TIERS.md](TIERS.md#the-bucket).",
        "archive.bucket.",
        "",
        BucketSection,
    ),
    _ReferencePart(
        "[archive.mirror]",
        "May be left out: then the bucket has only what `[archive.tiers]` moves there. See [TIERS.md](TIERS.md#the-mirror).",
        "archive.mirror.",
        "",
        MirrorSection,
    ),
    _ReferencePart(
        "[archive.encryption]",
        "May be left out. See [TIERS.md](TIERS.md#encryption).",
        "archive.encryption.",
        "",
        EncryptionSection,
    ),
    _ReferencePart("[[archive.encryption.key]]", "One for each key.", "archive.encryption.key.", "", EncryptionKey),
    _ReferencePart(
        "[archive.tiers]",
        "May be left out: then binlogs stay as they were received. See [TIERS.md](TIERS.md).",
        "archive.tiers.",
        "",
        TiersSection,
    ),
    _ReferencePart(
        "[retention]",
        "May be left out: then nothing is removed but by PURGE. SIGHUP takes all of it over. See [RETENTION.md](RETENTION.md).",
        "retention.",
        "",
        RetentionSection,
    ),
    _ReferencePart("[listen]", "May be left out.", "listen.", "", ListenSection),
    _ReferencePart("[http]", "May be left out. See [METRICS.md](METRICS.md).", "http.", "", HttpSection),
    _ReferencePart("[memory]", "May be left out. See [RUNNING.md](RUNNING.md#memory).", "memory.", "", MemorySection),
    _ReferencePart(
        "[[account]]",
        "One for each login. Without any no replica can log in. See [REPLICAS.md](REPLICAS.md).",
        "account.",
        "",
        Account,
    ),
    _ReferencePart(
        "[[replica]]",
        "May be left out; one for each replica. Without it, how far that replica has applied is not known. The page, the JSON and "
        "the metrics need `[http]` for it; `binlog-relay status` does not. SIGHUP takes all of it over. See "
        "[REPLICAS.md](REPLICAS.md#how-far-a-replica-has-applied).",
        "replica.",
        "",
        ReplicaSection,
    ),
    _ReferencePart(
        "[[view]]",
        "May be left out; one for each. What is changed of a view takes effect at the next start.",
        "view.",
        "",
        ViewSection,
    ),
    _ReferencePart("view.start with a file", 'Instead of `"earliest"`.', "view.start.", "", ViewStartPlace),
)


def page() -> str:
    """Return the whole page."""
    texts = _texts()
    parts = [_HEAD]
    for section in _PARTS:
        parts.append(f"## {section.title}\n\n{section.model.__doc__ or ''} {section.note}\n")
        schema = section.model.model_json_schema()["properties"]
        for key in sorted(schema, key=lambda key: key not in section.model.__annotations__):
            facts = schema[key]
            meaning, example = texts[section.model.__name__, key]
            required = key in section.model.model_json_schema().get("required", ())
            parts.append(
                f"### {section.prefix}{key}{section.suffix}\n\n{meaning}\n\n{_facts(key, facts, required, example)}\n"
            )
    return "\n".join(parts)


def examples() -> dict[tuple[str, str], str]:
    """Return the value of each example as it is written in a file, by the names of model and key."""
    return {key: example for key, (_, example) in _texts().items()}


def _texts() -> dict[tuple[str, str], tuple[str, str]]:
    """Return meaning and example of each key, by the names of model and key.

    Raises: ValueError for a key of the page without a text, or without an example in it.
    """
    found: dict[tuple[str, str], tuple[str, str]] = {}
    modules = {sys.modules[owner.__module__] for section in _PARTS for owner in _owners(section.model)}
    classes = {
        node.name: node
        for module in modules
        for node in ast.parse(inspect.getsource(module)).body
        if isinstance(node, ast.ClassDef)
    }
    for section in _PARTS:
        body = [line for owner in _owners(section.model) for line in classes[owner.__name__].body]
        for field, text in zip(body, [*body[1:], None], strict=True):
            if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
                continue
            name = field.target.id
            key = section.model.model_fields[name].alias or name
            shown = text.value.value if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) else None
            match = _EXAMPLE.fullmatch(re.sub(r"\s+", " ", shown)) if isinstance(shown, str) else None
            if match is None:
                raise ValueError(f"{section.model.__name__}.{key} has no text that ends with an example")
            found[section.model.__name__, key] = match["meaning"], match["example"]
    return found


def _owners(model: type[BaseModel]) -> list[type[BaseModel]]:
    """Return the classes that the keys of a section are written in: its own, and those it shares with other sections."""
    return [one for one in model.__mro__ if issubclass(one, TomlSection) and one is not TomlSection]


def _facts(key: str, facts: dict[str, Any], required: bool, example: str) -> str:
    default = "none, it must be given" if required else _default(facts["default"])
    lines = [f"- Type: {_type(facts)}", *(["- Unit: seconds"] if key.endswith("_s") else []), f"- Default: {default}"]
    return "\n".join([*lines, f"- Example: `{key} = {example}`"])


def _default(value: object) -> str:
    if value is None:
        return "left out"
    # 10.0 is written as people write it.
    return f"`{json.dumps(int(value) if isinstance(value, float) and value.is_integer() else value)}`"


def _type(facts: dict[str, Any]) -> str:
    """Return the type in words, from a JSON schema."""
    if "anyOf" in facts:
        return _type(next(one for one in facts["anyOf"] if one.get("type") != "null"))
    if "$ref" in facts:
        return "a section of its own, or a table in braces"
    if facts.get("type") == "array":
        return "sections of their own, or tables in braces"
    if "oneOf" in facts:
        first = facts["oneOf"][0]
        words = ", ".join(f"`{json.dumps(word)}`" for word in first.get("enum") or [first["const"]])
        return f"{words} or a table in braces"
    if "const" in facts:
        return f"`{json.dumps(facts['const'])}`"
    if "enum" in facts:
        *most, last = (f"`{json.dumps(value)}`" for value in facts["enum"])
        return f"{', '.join(most)} or {last}"
    kind = str(facts["type"])
    if kind == "object":
        return "a table in braces"
    if kind in ("integer", "number"):
        low = f"from {facts['minimum']}" if "minimum" in facts else f"above {facts['exclusiveMinimum']},"
        high = f" to {facts['maximum']}" if "maximum" in facts else ""
        return f"{'whole number' if kind == 'integer' else 'number'}, {low}{high}"
    if kind == "boolean":
        return "`true` or `false`"
    form = {"path": "path", "password": "text, a secret"}.get(facts.get("format", ""), "text")
    return f"{form}, at most {facts['maxLength']} characters" if "maxLength" in facts else form


if __name__ == "__main__":
    print(page(), end="")  # noqa: T201 - a command's own output
