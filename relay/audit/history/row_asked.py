"""The row of a history, as --table and --key name it."""

import json
from dataclasses import dataclass

from relay.commands.outcome import CommandFailed


@dataclass(frozen=True, slots=True)
class RowAsked:
    """A row of `schema`.`table`. `key` pairs columns with values as texts; a value alone is under "" until its column is known."""

    schema: str
    table: str
    key: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        """The name as schema.table."""
        return f"{self.schema}.{self.table}"

    @property
    def columns(self) -> tuple[str, ...]:
        """The key's columns."""
        return tuple(column for column, _ in self.key)

    @property
    def values(self) -> tuple[str, ...]:
        """The key's values."""
        return tuple(value for _, value in self.key)

    def told(self) -> str:
        """Return the key in words, such as id = 42."""
        return key_text(self.columns, self.values)

    def with_columns(self, primary_key: tuple[str, ...] | None) -> "RowAsked":
        """Return the same with the column of a value that was given alone. None means that the primary key is unknown. Raises:
        CommandFailed."""
        if self.columns != ("",):
            return self
        example = json.dumps({"id": 42})
        if primary_key is None:
            raise CommandFailed(
                f"nobody told the primary key of {self.name}: name its columns, --key '{example}'. Columns that have no names in "
                f"these files are called @1, @2 ….",
            )
        if not primary_key:
            raise CommandFailed(
                f"{self.name} has no primary key: name columns that make a row findable, --key '{example}'."
            )
        if len(primary_key) > 1:
            columns = json.dumps(dict.fromkeys(primary_key, 42))
            raise CommandFailed(f"the primary key of {self.name} has {len(primary_key)} columns: --key '{columns}'.")
        return RowAsked(self.schema, self.table, ((primary_key[0], self.values[0]),))


def key_text(columns: tuple[str, ...], values: tuple[str | None, ...] | None) -> str:
    """Return a key in words."""
    if values is None:
        return "-"
    return ", ".join(f"{column} = {value}" for column, value in zip(columns, values, strict=True))


def parse_row(table: str, key: str) -> RowAsked:
    """Parse --table db.t and --key 42, --key abc, or --key '{"id": 42, "part": 1}'. Raises: CommandFailed."""
    schema, dot, name = table.partition(".")
    if not (schema and dot and name):
        raise CommandFailed(f"--table is {table!r}: it takes a table with its database, such as shop.orders.")
    try:
        value = json.loads(key, parse_int=str, parse_float=str, parse_constant=str)
    except ValueError:
        value = key
    named = value if isinstance(value, dict) else {"": value}
    made = tuple((column, _value_text(one)) for column, one in named.items())
    if not made or any(text is None for _, text in made):
        example = json.dumps({"id": 42})
        raise CommandFailed(f"--key is {key!r}: it takes a value, or columns with values, such as '{example}'.")
    return RowAsked(schema, name, tuple((column, text) for column, text in made if text is not None))


def _value_text(value: object) -> str | None:
    """Return a value as level rows has it, in JSON without its quotes; None for anything that is no key's value."""
    if isinstance(value, bool):
        return str(int(value))
    return value if isinstance(value, str) and value else None
