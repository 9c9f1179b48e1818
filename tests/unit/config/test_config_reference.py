"""docs/CONFIGURATION.md: it is what the model says, and its examples are good."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from relay.config import reference, sections
from relay.config.replica_section import ReplicaSection
from relay.config.sections import (
    Account,
    ArchiveSection,
    Config,
    DirectorySource,
    ListenSection,
    ServerSource,
    StartGtid,
    StartPosition,
    ViewSection,
    ViewStartPlace,
)
from relay.config.server_security import ServerSecurity
from relay.config.tiers_section import BucketSection, EncryptionKey
from relay.config.toml_section import TomlSection

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "CONFIGURATION.md"
NEEDED: dict[type[BaseModel], dict[str, Any]] = {
    ServerSource: {"host": "db", "user": "repl", "server_id": 7},
    DirectorySource: {"kind": "directory", "path": "/old"},
    ArchiveSection: {"dir": "/archive"},
    Account: {"user": "replica"},
    ReplicaSection: {"host": "db", "user": "watch"},
    BucketSection: {"url": "s3://binlogs"},
    EncryptionKey: {"id": "a"},
    StartPosition: {"file": "mysql-bin.000001"},
    StartGtid: {"gtid": "0-1-2"},
    ListenSection: {},
    ViewSection: {"name": "gtid"},
    ViewStartPlace: {"file": "mysql-bin.000001"},
}


def sections_of_the_model() -> dict[str, type[BaseModel]]:
    found = {name: thing for name, thing in vars(sections).items() if isinstance(thing, type)}
    found["EncryptionKey"] = EncryptionKey
    own = {name: thing for name, thing in found.items() if thing.__module__.startswith("relay.config.")}
    return {
        name: thing
        for name, thing in own.items()
        if issubclass(thing, BaseModel) and thing not in (TomlSection, ServerSecurity)
    }


def test_the_page_is_what_the_model_says() -> None:
    # If not: python -m relay.config.reference > docs/CONFIGURATION.md
    assert PAGE.read_text(encoding="utf-8") == reference.page()


def test_every_key_of_the_model_is_on_the_page() -> None:
    models = {name: thing for name, thing in sections_of_the_model().items() if thing is not Config}
    keys = {(name, field.alias or key) for name, thing in models.items() for key, field in thing.model_fields.items()}
    assert set(reference.examples()) == keys


@pytest.mark.parametrize(("model", "key"), list(reference.examples()))
def test_an_example_is_accepted(model: str, key: str) -> None:
    kind = sections_of_the_model()[model]
    example = tomllib.loads(f"value = {reference.examples()[model, key]}")["value"]
    kind.model_validate({**NEEDED.get(kind, {}), key: example})


@pytest.mark.parametrize(("model", "key"), list(reference.examples()))
def test_the_sample_configuration_shows_every_key(model: str, key: str) -> None:
    sample = (ROOT / "deploy" / "relay.toml").read_text(encoding="utf-8")
    assert re.search(rf"\b{key} =|\[archive\.{key}\]|\.{key}\]\]", sample)
