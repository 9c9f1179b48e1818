"""Character sets and collations that a statement names, as a target has them."""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

from relay.view.rules.targets.known.collation_map import CollationMap
from relay.view.rules.targets.known.target import Target
from relay.view.rules.targets.known.target_collations import GENERAL, collation_name, collation_number, is_known
from relay.view.rules.targets.statement.source_statement import SourceStatement
from relay.view.stops import definition_stops, statement_stops

_UTF8MB4: Final = "utf8mb4"
_SETS: Final = (("CHARACTER", "SET"), ("CHAR", "SET"), ("CHARSET",))
_CONVERSIONS: Final = frozenset(("CAST", "CONVERT"))
_BEHIND_OPTIONS: Final = frozenset(("PARTITION", "SELECT", "WITH", "AS", "IGNORE", "REPLACE", "TABLE", "VALUES"))
_NOT_OF_THE_TABLE: Final = -1


class CharsetWords:
    """The rules for one statement. `default` is the collation of utf8mb4 in it where none is named."""

    def __init__(
        self, statement: SourceStatement, text: bytes, default: int, collations: CollationMap, target: Target
    ) -> None:
        self._statement = statement
        self._text = text
        self._default = default
        self._collations = collations
        self._target = target
        self._collates = list(self._values("COLLATE"))
        self._sets = [found for words in _SETS for found in self._values(*words)]
        self._brackets = statement.brackets
        self._definition = statement.definition
        self._owners = self._owner_of_each() if self._sets and self._definition is not None else None
        self._collates_of: dict[tuple[int, int], list[int]] = {}
        for index, value in self._collates if self._sets else ():
            self._collates_of.setdefault(self._scope(index), []).append(value)

    def translate(self) -> None:
        """Replace collations that the target does not have by those of the view's map; where the default of utf8mb4 would differ from
        the source's, write it out, in definitions. Raises: Untranslatable.

        Seen on 5.6.24: BINARY after a set is ignored in CAST and in parameters, and makes columns `_bin` as on 9.7.4.
        """
        for _, value in self._collates:
            number = collation_number(self._statement.text_at(value))
            if number is not None and not is_known(number, self._target):
                chosen = collation_name(self._collations.of_comparison(number, self._text))
                self._statement.replace(self._statement.words[value].start, self._statement.words[value].stop, chosen)
        for index, value in self._sets:
            self._charset(index, value)
        if self._default == GENERAL or self._target.version >= (8, 0):
            return
        for index in self._statement.places("USING"):
            if self._statement.text_at(index + 1) == _UTF8MB4:
                self._in_expression(index + 2)
        for index in self._statement.places("_UTF8MB4"):
            self._in_expression(index + 1)

    def _values(self, *words: str) -> Iterator[tuple[int, int]]:
        for index in self._statement.places(*words):
            value = index + len(words)
            value += self._statement.word(value) == "="
            if self._statement.text_at(value):
                yield index, value

    def _charset(self, index: int, value: int) -> None:
        name = self._statement.text_at(value)
        if name == "gb18030" and self._target.version < (5, 7):
            raise definition_stops.clause_unknown(self._target.title, self._text, "the character set gb18030")
        if self._target.version >= (8, 0):
            return
        binary = "BINARY" in (self._statement.word(index - 1), self._statement.word(value + 1))
        of_default = name == _UTF8MB4 and self._default != GENERAL
        if self._statement.starts("LOAD"):
            # the file's bytes are read by it, and variables from there are compared by it
            if of_default and assigns(self._statement):
                self._in_expression(value)
            return
        if self._statement.word(self._brackets.opening(index) - 1) in _CONVERSIONS:
            if of_default and not binary:
                self._in_expression(value + 1)
            return
        if not self._is_of_schema_or_table:
            # parameters and variables of programs: the collation follows the type, and BINARY is read and ignored before 8.0
            last = value + (self._statement.word(value + 1) == "BINARY")
            if self._statement.word(last + 1) == "COLLATE":
                return
            if binary:
                self._statement.after(last, f" COLLATE {name}_bin")
            elif of_default:
                self._write_out(value)
            return
        if binary:
            return
        named = self._collates_of.get(self._scope(index), [])
        behind = bisect_left(named, index)
        if behind < len(named):
            return
        if named:
            # 8.0 and later keep a collation named before the set; older ones replace it by the set's default
            self._statement.after(value, f" COLLATE {self._named(named[-1])}")
        elif of_default:
            self._write_out(value)

    def _write_out(self, value: int) -> None:
        chosen = self._collations.of_comparison(self._default, self._text)
        if chosen != GENERAL:
            self._statement.after(value, f" COLLATE {collation_name(chosen)}")

    def _in_expression(self, last: int) -> None:
        """Check utf8mb4 without a collation in a value that ends at `last`: a COLLATE there would also override that of columns."""
        if self._statement.word(last + 1) == "COLLATE":
            return
        chosen = self._collations.of_comparison(self._default, self._text)
        if chosen != GENERAL:
            raise statement_stops.collation_of_values_differs(
                self._target.title, self._text, collation_name(self._default), collation_name(chosen)
            )

    @property
    def _is_of_schema_or_table(self) -> bool:
        return self._definition is not None or self._statement.word(1) in ("DATABASE", "SCHEMA")

    def _named(self, value: int) -> str:
        """Return the collation named at `value`, as the target has it."""
        name = self._statement.text_at(value)
        number = collation_number(name)
        return name if number is None else collation_name(self._collations.of_comparison(number, self._text))

    def _scope(self, index: int) -> tuple[int, int]:
        """Return a key that is equal for words of the same column, or of the table, between the same parentheses."""
        return self._owners[index] if self._owners is not None else 0, self._brackets.opening(index)

    def _owner_of_each(self) -> list[int]:
        """Return for each word the number of its definition; 0: it belongs to the table; -1: it follows the table's options."""
        owners = [0] * len(self._statement.words)
        last = 0
        for number, element in enumerate(self._definition.written.elements if self._definition is not None else (), 1):
            start, last = self._statement.index_at(element.start), self._statement.index_at(element.stop)
            owners[start:last] = [number] * (last - start)
        # by the third word of a CREATE TABLE, and the fourth of an ALTER TABLE, the table is named
        for index in range(max(last, 4), len(owners)):
            if (
                self._brackets.opening(index) < 0
                and self._statement.word(index) in _BEHIND_OPTIONS
                and self._ends(index)
            ):
                return owners[:index] + [_NOT_OF_THE_TABLE] * (len(owners) - index)
        return owners

    def _ends(self, index: int) -> bool:
        """Return whether the options end before the word at `index`: PARTITION BY does end them, before the partitions."""
        return self._statement.word(index) != "PARTITION" or self._statement.word(index + 1) == "BY"


def assigns(statement: SourceStatement) -> bool:
    """Return whether a LOAD DATA has SET with values that are computed."""
    return any(statement.word(index - 1) not in ("CHARACTER", "CHAR") for index in statement.places("SET"))
