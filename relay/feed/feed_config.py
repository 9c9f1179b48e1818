"""The settings in feed.toml: what is fed, from where and into what."""

import os
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator

from relay.config.model_problems import model_problem
from relay.config.server_security import ServerSecurity
from relay.config.text.passwords import password_text
from relay.config.text.problems import ConfigError, Findings, Wrong
from relay.config.text.tls_files import check_server_files
from relay.config.text.toml_text import read_toml
from relay.config.toml_section import TomlSection
from relay.config.values import HostName, NonEmpty, PathText, Port, UserName

ELSEWHERE: Final = "elsewhere"
"""This value of `relay` says that the archive's relay runs where it cannot be asked."""


class StorageSection(TomlSection):
    """[feed.storage]: access to a bucket. Missing values are taken from the environment (AWS_…)."""

    endpoint: NonEmpty | None = None
    region: NonEmpty | None = None
    access_key_id: NonEmpty | None = None
    access_key_id_file: PathText | None = None
    secret_access_key_file: PathText | None = None
    secret_access_key_env: NonEmpty | None = None
    allow_http: bool = False

    @field_validator("secret_access_key_env")
    @classmethod
    def _is_set(cls, value: str | None) -> str | None:
        if value is not None and value not in os.environ:
            raise Wrong(f"the environment has no variable {value}", "Set it before starting")
        return value

    @model_validator(mode="after")
    def _is_allowed(self) -> "StorageSection":
        if self.endpoint is not None and self.endpoint.lower().startswith("http://") and not self.allow_http:
            raise Wrong(
                "`endpoint` is http://, and what is sent there anyone on the way can read",
                "Set allow_http = true in [feed.storage], or use https://",
            )
        return self

    def options(self) -> dict[str, str]:
        """Return the options as delta-rs takes them. Raises: OSError."""
        found = {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_REGION": self.region,
            "AWS_ACCESS_KEY_ID": self.access_key_id
            or (Path(self.access_key_id_file).read_text().strip() if self.access_key_id_file else None),
            "AWS_SECRET_ACCESS_KEY": Path(self.secret_access_key_file).read_text().strip()
            if self.secret_access_key_file
            else (os.environ[self.secret_access_key_env] if self.secret_access_key_env else None),
            "AWS_ALLOW_HTTP": "true" if self.allow_http else None,
        }
        return {name: value for name, value in found.items() if value is not None}


class FeedSource(ServerSecurity):
    """[feed.source]: the source itself, for snapshots and `feed verify`. The account needs SELECT and REPLICATION CLIENT."""

    host: HostName
    port: Port = 3306
    user: UserName
    password: SecretStr | None = None
    password_file: PathText | None = None
    password_env: NonEmpty | None = None
    chunk_rows: Annotated[int, Field(ge=1, le=1_000_000)] = 10_000
    """The number of rows that are read, and locked against changes, at once."""

    def password_of(self) -> str:
        """Return the password. Raises: OSError."""
        if self.password_env is not None and self.password_env not in os.environ:
            raise OSError(f"password_env of [feed.source]: the environment has no variable {self.password_env}")
        return password_text(self.password, self.password_file, self.password_env, None) or ""


class FeedSection(TomlSection):
    """[feed]: the archive, the lake and the tables that are fed."""

    archive: NonEmpty
    target: NonEmpty
    format: Literal["delta", "iceberg"] = "delta"
    catalog: Annotated[NonEmpty | None, Field(repr=False)] = None
    """The catalog of Iceberg: a file for SQLite or a URL of SQLAlchemy. The default is catalog.sqlite in the target, which is a directory then."""
    tables: Annotated[list[NonEmpty], Field(min_length=1)] = ["*.*"]
    exclude: list[NonEmpty] = []
    modes: Annotated[list[Literal["current", "changes"]], Field(min_length=1)] = ["current", "changes"]
    start: NonEmpty = "earliest"
    interval_s: Annotated[float, Field(ge=0.1, le=3600)] = 5.0
    batch_mb: Annotated[int, Field(ge=1, le=1024)] = 16
    memory_mb: Annotated[int, Field(ge=64)] = 512
    spool_directory: PathText | None = None
    """The place of the directory for what does not fit into memory. The default is the system's temporary directory (TMPDIR)."""
    spool_above_kb: Annotated[int | None, Field(ge=1)] = None
    """Rows of a batch above this size are written to disk. The default is an eighth of memory_mb."""
    statement_changes: Literal["every", "named"] = "every"
    assume_empty: bool = False
    no_cascades: list[NonEmpty] = []
    trusted_images: list[NonEmpty] = []
    invalid_dates: Literal["null", "stop"] = "stop"
    on_trouble: Literal["stop-table", "stop-feed"] = "stop-table"
    relay: Literal["elsewhere"] | PathText | None = None
    """The relay.toml of the archive's relay, which is asked how far the archive is behind the source; or "elsewhere"."""
    storage: StorageSection = StorageSection()
    source: FeedSource | None = None

    @field_validator("tables", "exclude", "no_cascades", "trusted_images")
    @classmethod
    def _patterns(cls, value: list[str]) -> list[str]:
        for one in value:
            if "." not in one:
                raise Wrong(f"{one!r} names no schema", "Write SCHEMA.TABLE, shop.* or *.orders")
        return value

    @model_validator(mode="after")
    def _with_catalog(self) -> "FeedSection":
        if self.format == "iceberg" and self.catalog is None and "://" in self.target:
            raise Wrong(
                'format = "iceberg" in a bucket needs `catalog`',
                'Write a file for SQLite, or "postgresql+psycopg2://..."',
            )
        return self

    @model_validator(mode="after")
    def _from_the_start(self) -> "FeedSection":
        if self.assume_empty and self.start != "earliest":
            raise Wrong(
                'assume_empty goes with start = "earliest" only: elsewhere tables have rows that are not known',
                "Take one of them away",
            )
        return self


class FeedConfig(TomlSection):
    """A whole feed.toml."""

    section: Annotated[FeedSection, Field(alias="feed")]


def load_feed_config(path: Path) -> FeedSection:
    """Read feed.toml. Raises: ConfigError, with all mistakes."""
    data: dict[str, Any] = read_toml(path, "docs/FEED.md has samples")
    findings = Findings()
    source = data["feed"].get("source") if isinstance(data.get("feed"), dict) else None
    if isinstance(source, dict):
        check_server_files("feed.source", source, findings)
    if findings.problems:
        raise ConfigError(path, findings.problems)
    try:
        return FeedConfig.model_validate(data).section
    except ValidationError as error:
        details = error.errors(include_url=False)
        raise ConfigError(path, [model_problem(detail, data, FeedConfig) for detail in details]) from None
