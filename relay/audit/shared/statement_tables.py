"""Statements as SQL expressions for Spark: the table that a statement changes, and the engine that one gives to a table.

The head of a statement is examined, as far as comments and modifiers go: of several tables in one statement the first is found; those
that triggers, functions and procedures change are not.
"""

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

# Statements are of any size and any origin. Java's patterns recurse for each turn of a group, so groups turn a bounded number of times;
# what was matched is not retried in another way, (?>…), so that no text takes long. Backtick names may contain anything, and a backtick
# twice; others letters, digits, _ and $, and what is not ASCII.
_NAME: Final = r"(?>`(?:[^`]|``){1,256}`|[\w$\x{80}-\x{10FFFF}]+)"
_TABLE: Final = rf"({_NAME})(?:\s*\.\s*({_NAME}))?"
# Blanks, comments and parentheses may precede a statement; /*! … */ is part of it.
_LEAD: Final = r"^(?>[\s(]*(?:(?>/\*(?!M?!).*?\*/|/\*M?!\d*|\*/|(?:--(?=[\s\x00-\x1f])|#)[^\n]*\n)[\s(]*){0,20})"
# This may be between two words.
_GAP: Final = r"(?>(?:\s+|(?=/\*))(?:/\*.*?\*/\s*){0,4})"
_CHANGES: Final = (
    rf"(?is){_LEAD}(?:(?:INSERT|REPLACE){_GAP}(?:(?:LOW_PRIORITY|DELAYED|HIGH_PRIORITY|IGNORE){_GAP}){{0,4}}+(?:INTO{_GAP})?+"
    rf"|UPDATE{_GAP}(?:(?:LOW_PRIORITY|IGNORE){_GAP}){{0,4}}+"
    rf"|DELETE{_GAP}(?:(?:LOW_PRIORITY|QUICK|IGNORE){_GAP}){{0,4}}+(?:FROM{_GAP})?+"
    rf"|LOAD\s+(?:DATA|XML)\b.*?\bINTO\s+TABLE{_GAP})"
    rf"{_TABLE}"
)
_DEFINES: Final = (
    rf"(?is){_LEAD}(?:CREATE{_GAP}(?:OR{_GAP}REPLACE{_GAP})?TABLE{_GAP}(?:IF{_GAP}NOT{_GAP}EXISTS{_GAP})?"
    rf"|ALTER{_GAP}(?:(?:IGNORE|ONLINE|OFFLINE){_GAP}){{0,4}}+TABLE{_GAP}(?:IF{_GAP}EXISTS{_GAP})?)"
    rf"{_TABLE}"
)
# These words may be between the verb of a definition and its object.
_MODIFIER: Final = (
    rf"(?>OR{_GAP}REPLACE|TEMPORARY|UNIQUE|FULLTEXT|SPATIAL|ONLINE|OFFLINE|IGNORE|AGGREGATE|UNDO|DEFINER\s*=\s*[^\s]+(?:\s*@\s*[^\s]+)?"
    rf"|ALGORITHM\s*=\s*\w+|SQL{_GAP}SECURITY{_GAP}\w+)"
)
_THING: Final = "TABLE|INDEX|DATABASE|SCHEMA|VIEW|TRIGGER|PROCEDURE|FUNCTION|EVENT|USER|ROLE|SERVER|TABLESPACE|SEQUENCE|PACKAGE|LOGFILE"
_DEFINITION: Final = (
    rf"(?is){_LEAD}(CREATE|ALTER|DROP|RENAME|TRUNCATE){_GAP}(?:{_MODIFIER}{_GAP}){{0,6}}(?:({_THING})\b|(?={_NAME}))"
)
_NAMES: Final = (
    rf"(?is){_LEAD}(?:CREATE|ALTER|DROP|RENAME|TRUNCATE){_GAP}(?:{_MODIFIER}{_GAP}){{0,6}}"
    rf"(?:TABLE{_GAP}|INDEX\b.{{0,400}}?\bON{_GAP})?(?:IF{_GAP}(?:NOT{_GAP})?EXISTS{_GAP})?"
    rf"(?!(?:{_THING})\b){_TABLE}"
)
_ENGINE: Final = r"(?is)\b(?:ENGINE|TYPE)\s*=?\s*[`'\"]?(\w+)"


def changed_table(statement: str = "digest_text", schema: str = "schema") -> Column:
    """Return schema.table that the INSERT, REPLACE, UPDATE, DELETE or LOAD DATA changes; NULL for other statements."""
    return _table(F.col(statement), F.col(schema), _CHANGES)


def defined_table(statement: str = "digest_text", schema: str = "schema") -> Column:
    """Return schema.table of the CREATE TABLE or ALTER TABLE; NULL for other statements."""
    return _table(F.col(statement), F.col(schema), _DEFINES)


def named_engine(statement: str = "digest_text") -> Column:
    """Return the engine that the statement names; NULL if it names none."""
    name = F.regexp_extract(F.col(statement), _ENGINE, 1)
    return F.when(name != "", name)


def _table(statement: Column, schema: Column, pattern: str) -> Column:
    first = F.regexp_extract(statement, pattern, 1)
    second = F.regexp_extract(statement, pattern, 2)
    table = F.when(second != "", F.concat(_plain(first), F.lit("."), _plain(second))).otherwise(
        F.concat(F.coalesce(schema, F.lit("")), F.lit("."), _plain(first))
    )
    return F.when(first != "", table)


def _plain(name: Column) -> Column:
    """Return the name without its backticks."""
    inner = F.regexp_replace(F.regexp_replace(name, "^`|`$", ""), "``", "`")
    return F.when(name.startswith("`"), inner).otherwise(name)


def defined_thing(statement: str = "digest_text") -> Column:
    """Return what a definition does, as CREATE TABLE, DROP VIEW, ALTER DATABASE; NULL for other statements."""
    verb = F.upper(F.regexp_extract(F.col(statement), _DEFINITION, 1))
    thing = F.upper(F.regexp_extract(F.col(statement), _DEFINITION, 2))
    return F.when(verb != "", F.concat_ws(" ", verb, F.when(thing == "SCHEMA", "DATABASE").otherwise(thing)))


def named_table(statement: str = "digest_text", schema: str = "schema") -> Column:
    """Return schema.table that a definition of a table names first; NULL for others."""
    return _table(F.col(statement), F.col(schema), _NAMES)
