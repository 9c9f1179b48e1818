"""A comparison of two versions of a table: columns, keys, engine, character set."""

from collections.abc import Iterator

from protocol.sql.tables.source_table import Column, Key, Table


def table_differences(before: Table | None, after: Table | None) -> list[str]:
    """Return the differences in `after`, each in a few words; None means that there was no such table, or that it is unknown."""
    if before is None or after is None:
        return [] if before is after else [f"{_columns_told(after)}"] if after is not None else ["not known any more"]
    return [
        *_column_changes(before.columns, after.columns),
        *_key_changes(dict(before.keys), dict(after.keys)),
        *_option_changes(before, after),
    ]


def _columns_told(table: Table) -> str:
    columns = ", ".join(f"{column.name} {column.type}" for column in table.columns)
    key = f"; primary key {', '.join(table.primary_key)}" if table.primary_key else "; no primary key"
    engine = f"; {table.engine}" if table.engine else ""
    return f"columns {columns}{key}{engine}"


def _column_changes(before: tuple[Column, ...], after: tuple[Column, ...]) -> Iterator[str]:
    old, new = {column.name: column for column in before}, {column.name: column for column in after}
    renamed = _renamed(before, after)
    for name, column in old.items():
        if name not in new and name not in renamed:
            yield f"column {name} {column.type} dropped"
    for name, column in new.items():
        if name in old:
            yield from _column_differs(old[name], column)
        elif name in renamed.values():
            first = next(old_name for old_name, new_name in renamed.items() if new_name == name)
            yield f"column {first} renamed {name}"
            yield from _column_differs(old[first], column)
        else:
            yield f"column {name} {column.type} added{_place(name, after)}"
    kept_before = [renamed.get(column.name, column.name) for column in before]
    moved = [column.name for column in after if column.name in kept_before]
    if [name for name in kept_before if name in moved] != moved:
        yield f"columns in another order: {', '.join(column.name for column in after)}"


def _renamed(before: tuple[Column, ...], after: tuple[Column, ...]) -> dict[str, str]:
    """Return columns at the same place in a table of as many columns that have another name now."""
    if len(before) != len(after):
        return {}
    names_before, names_after = {column.name for column in before}, {column.name for column in after}
    return {
        old.name: new.name
        for old, new in zip(before, after, strict=True)
        if old.name not in names_after and new.name not in names_before
    }


def _place(name: str, columns: tuple[Column, ...]) -> str:
    names = [column.name for column in columns]
    at = names.index(name)
    return " at the end" if at == len(names) - 1 else " first" if at == 0 else f" behind {names[at - 1]}"


def _column_differs(old: Column, new: Column) -> Iterator[str]:
    if old.type != new.type:
        yield f"column {new.name} {old.type} is {new.type}"
    if (old.charset, old.collation) != (new.charset, new.collation) and new.charset:
        yield f"column {new.name} {_charset(old)} is {_charset(new)}"
    if old.nullable != new.nullable:
        yield f"column {new.name} {'takes NULL' if new.nullable else 'does not take NULL any more'}"
    if old.default != new.default:
        yield f"column {new.name} default {_default(old)} is {_default(new)}"


def _charset(column: Column) -> str:
    return column.collation or column.charset or "without a character set"


def _default(column: Column) -> str:
    return "none" if column.default is None else column.default


def _key_changes(old: dict[str, Key], new: dict[str, Key]) -> Iterator[str]:
    for name, key in old.items():
        if name not in new:
            yield f"{_key_told(name, key)} dropped"
    for name, key in new.items():
        if name not in old:
            yield f"{_key_told(name, key)} added"
        elif (old[name].columns, old[name].unique) != (key.columns, key.unique):
            yield f"{_key_told(name, old[name])} is {_key_told(name, key)}"


def _key_told(name: str, key: Key) -> str:
    columns = ", ".join(column or "an expression" for column in key.columns)
    if name == "PRIMARY":
        return f"primary key ({columns})"
    return f"{'unique ' if key.unique else ''}key {name} ({columns})"


def _option_changes(before: Table, after: Table) -> Iterator[str]:
    if before.engine.lower() != after.engine.lower() and after.engine:
        yield f"engine {before.engine or 'not known'} is {after.engine}"
    if before.charset != after.charset and after.charset:
        yield f"character set {before.charset or 'not known'} is {after.charset}"
