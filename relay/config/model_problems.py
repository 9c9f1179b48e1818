"""Translates pydantic's errors about a configuration into sentences: the key, what is wrong with it, what to write instead."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, get_args

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from relay.config.sections import (
    Config,
    DirectorySource,
    ServerSource,
    StartGtid,
    StartPosition,
    start_tag,
)
from relay.config.text.problems import Problem, Wrong
from relay.config.text.source_list import OTHERS

_SECRET_KEYS: Final = {"password", "password_hash", "token"}
_EXAMPLES: Final = {
    "source": '[source] with kind = "server" or kind = "directory"',
    "source.host": 'host = "127.0.0.1"',
    "source.user": 'user = "repl"',
    "source.server_id": "server_id = 4242, a number no other replica of the source has",
    "source.path": 'path = "/var/backups/binlogs"',
    "archive": '[archive] with dir = "/var/lib/binlog-relay"',
    "archive.bucket.url": 'url = "s3://binlogs/relay-a"',
    "archive.encryption.key.id": 'id = "2026-11"',
    "archive.dir": 'dir = "/var/lib/binlog-relay"',
    "source.start": '"earliest", "latest", { file = "mysql-bin.000042", position = 4 } or { gtid = "…" }',
    "source.start.file": 'file = "mysql-bin.000042"',
    "account.user": 'user = "replica"',
    "replica.host": 'host = "db-new.example"',
    "replica.user": 'user = "relay_watch"',
    "view.name": 'name = "gtid"',
    "view.start": '"earliest" or { file = "mysql-bin.000042", position = 4, next = 1000001 }',
    "view.start.file": 'file = "mysql-bin.000042"',
}
_TYPE_WORDS: Final = {
    "int_type": "a whole number without quotes",
    "float_type": "a number without quotes",
    "string_type": "text in quotes",
    "path_type": "a path in quotes",
    "bool_type": "true or false",
    "model_type": "a section",
    "model_attributes_type": "a section",
    "dict_type": "a table such as { 255 = 45 }",
    "tuple_type": "one section in double brackets for each, such as [[account]]",
    "finite_number": "a finite number",
}


def model_problem(detail: ErrorDetails, data: Mapping[str, Any], root: type[BaseModel] = Config) -> Problem:
    """Return the sentence for one of pydantic's errors; `data` is what was checked, `root` the model of the whole file."""
    loc = _without_tags(detail["loc"], data)
    key = _key_path(loc)
    plain = ".".join(part for part in loc if isinstance(part, str))
    kind = detail["type"]
    context = detail.get("ctx", {})
    shown = _shown(detail.get("input"), loc)
    if kind == "extra_forbidden":
        return _unknown_key(key, loc, data, root)
    if kind == "missing":
        return Problem(key, "is missing", f"Write {_EXAMPLES.get(plain, 'a value for it')}")
    if kind == "union_tag_invalid":
        return Problem(f"{key}.kind", f"there is no kind {_shown_tag(context)}", 'Write "server" or "directory"')
    if kind == "literal_error":
        instead = _EXAMPLES.get(plain) or str(context.get("expected", "")).replace("'", '"')
        return Problem(key, f"has no choice {shown}", f"Write {instead}")
    if kind == "value_error" and isinstance(context.get("error"), Wrong):
        wrong: Wrong = context["error"]
        return Problem(key, f"{shown}: {wrong.what}" if shown and wrong.is_shown else wrong.what, wrong.advice)
    if kind in ("greater_than_equal", "less_than_equal", "greater_than", "less_than"):
        return Problem(key, f"{shown} is out of range", f"Write a number {_range(loc, data, root)}")
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
    """Drop the tags of unions, which pydantic puts between the keys."""
    if len(loc) >= 2 and loc[0] == "source" and loc[1] in ("server", "directory"):
        loc = (loc[0], *loc[2:])
    if len(loc) >= 5 and loc[0] == OTHERS and loc[2] == "start" and loc[3] in ("word", "place", "gtid"):
        loc = (*loc[:3], *loc[4:])
    if len(loc) >= 4 and loc[0] == "view" and loc[2] == "start" and loc[3] in ("word", "place"):
        loc = (*loc[:3], *loc[4:])
    if len(loc) >= 3 and loc[:2] == ("source", "start") and loc[2] in ("word", "place", "gtid"):
        loc = (*loc[:2], *loc[3:])
    return loc


def _key_path(loc: tuple[int | str, ...]) -> str:
    if len(loc) > 1 and loc[0] == OTHERS and isinstance(loc[1], int):
        loc = ("source", loc[1] + 1, *loc[2:])
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
    """Return what was typed, short, as TOML writes it; nothing for secrets and for whole sections."""
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


def _model_at(loc: tuple[int | str, ...], data: Mapping[str, Any], root: type[BaseModel]) -> type[BaseModel]:
    """Return the section that the last part of `loc` is, or would be, a key of. `root`: the model of the whole file."""
    model = root
    for part in loc[:-1]:
        if isinstance(part, str):
            found = _sections_of(model).get(part)
            if not found:
                break
            model = _chosen(found, data.get("source"))
    return model


def _sections_of(model: type[BaseModel]) -> dict[str, list[type[BaseModel]]]:
    """Return the sections in a section, by their keys, each with the models that it may have."""
    found = {field.alias or name: _models_in(field.annotation) for name, field in model.model_fields.items()}
    return {key: models for key, models in found.items() if models}


def _all_sections(model: type[BaseModel], within: str = "") -> Iterator[tuple[str, list[type[BaseModel]]]]:
    """Yield every section of a file with its name and the models that it may have, outer ones first."""
    found = {f"{within}{key}": models for key, models in _sections_of(model).items() if key != OTHERS}
    yield from found.items()
    for name, models in found.items():
        for one in models:
            yield from _all_sections(one, f"{name}.")


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for one in get_args(annotation) for model in _models_in(one)]


def _chosen(models: Sequence[type[BaseModel]], source: object) -> type[BaseModel]:
    """Return the model of a section that is meant, according to [source]."""
    kind = source.get("kind") if isinstance(source, dict) else None
    if DirectorySource in models:
        return DirectorySource if kind == "directory" else ServerSource
    if StartGtid in models:
        return StartGtid if start_tag(_started(source)) == "gtid" else StartPosition
    return models[0]


def _keys(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items() if field.alias != OTHERS]


def _unknown_key(key: str, loc: tuple[int | str, ...], data: Mapping[str, Any], root: type[BaseModel]) -> Problem:
    known = _keys(_model_at(loc, data, root))
    near = difflib.get_close_matches(str(loc[-1]), known, n=1, cutoff=0.6)
    if near:
        return Problem(key, "there is no such key", f"Did you mean {near[0]}?")
    # A key in the wrong section is the other common mistake.
    section = ".".join(part for part in loc[:-1] if isinstance(part, str)).replace(OTHERS, "source")
    homes = [name for name, models in _all_sections(root) if any(loc[-1] in _keys(model) for model in models)]
    home = next(iter(homes), None) if section not in homes else None
    if home is not None:
        return Problem(key, "there is no such key here", f"It belongs to [{home}]")
    return Problem(key, "there is no such key", f"Known here: {', '.join(known)}")


def _range(loc: tuple[int | str, ...], data: Mapping[str, Any], root: type[BaseModel]) -> str:
    """Return the allowed range of a number, from the model itself."""
    low: object = None
    high: object = None
    above: object = None
    field = next(
        (field for name, field in _model_at(loc, data, root).model_fields.items() if (field.alias or name) == loc[-1]),
        None,
    )
    for item in _metadata(field):
        low = getattr(item, "ge", low)
        high = getattr(item, "le", high)
        above = getattr(item, "gt", above)
    if above is not None:
        return f"above {above}" if high is None else f"above {above} and at most {high}"
    return f"from {low}" if high is None else f"from {low} to {high}"


def _metadata(field: FieldInfo | None) -> Iterator[object]:
    """Yield the metadata of a field's values, and of those in `X | None`."""
    if field is not None:
        yield from field.metadata
        for one in get_args(field.annotation):
            yield from getattr(one, "__metadata__", ())
