"""Character sets and collations that a statement names, as a target has them."""

from collections.abc import Iterator
from typing import Final

from relay.view.rules.targets.known import target_stops
from relay.view.rules.targets.known.collation_map import CollationMap
from relay.view.rules.targets.known.target import Target
from relay.view.rules.targets.known.target_collations import GENERAL, collation_name, collation_number, is_known
from relay.view.rules.targets.statement.source_statement import SourceStatement
from relay.view.rules.targets.statement.table_clauses import defines_table, definitions

_UTF8MB4: Final = "utf8mb4"


class CharsetWords:
    """The rules for one statement. default: the collation that utf8mb4 means in it where none is named."""

    def __init__(
        self, statement: SourceStatement, text: bytes, default: int, collations: CollationMap, target: Target
    ) -> None:
        self._statement = statement
        self._text = text
        self._default = default
        self._collations = collations
        self._target = target

    def translate(self) -> None:
        """Collations that the target lacks become those of the view's map; where the default of utf8mb4 would be another one than
        the source's, it is written out. Raises: CannotBeKept."""
        for _, value in self._values("COLLATE"):
            number = collation_number(self._statement.name(value))
            if number is not None and not is_known(number, self._target):
                chosen = collation_name(self._collations.of_comparison(number, self._text))
                self._statement.replace(self._statement.words[value].start, self._statement.words[value].stop, chosen)
        for index, value in self._charsets():
            self._charset(index, value)
        if self._default == GENERAL or self._target.version >= (8, 0):
            return
        converted = any(self._statement.name(index + 1) == _UTF8MB4 for index in self._statement.places("USING"))
        if converted or self._statement.has("_UTF8MB4"):
            self._collations.of_comparison(self._default, self._text)

    def _values(self, *words: str) -> Iterator[tuple[int, int]]:
        for index in self._statement.places(*words):
            value = index + len(words)
            value += self._statement.word(value) == "="
            if self._statement.name(value):
                yield index, value

    def _charsets(self) -> Iterator[tuple[int, int]]:
        for words in (("CHARACTER", "SET"), ("CHAR", "SET"), ("CHARSET",)):
            yield from self._values(*words)

    def _charset(self, index: int, value: int) -> None:
        name = self._statement.name(value)
        if name == "gb18030" and self._target.version < (5, 7):
            target_stops.clause_unknown("the character set gb18030", self._text, self._target)
        if self._target.version >= (8, 0):
            return
        start, stop = self._scope(index)
        if self._statement.word(value + 1) == "BINARY" or any(
            self._statement.word(at) == "COLLATE" for at in range(value, stop)
        ):
            return
        earlier = [at for _, at in self._values("COLLATE") if start <= at < index]
        if earlier:
            # 8.0 and later keep what was named before the set; before, the set's default takes its place
            if self._defines:
                self._statement.insert_behind(value, f" COLLATE {self._named(earlier[-1])}")
            return
        if name != _UTF8MB4 or self._default == GENERAL or self._statement.starts("LOAD"):
            return  # of LOAD DATA only the file's bytes are read by it
        chosen = self._collations.of_comparison(self._default, self._text)
        if chosen != GENERAL and self._defines:
            self._statement.insert_behind(value, f" COLLATE {collation_name(chosen)}")

    @property
    def _defines(self) -> bool:
        return defines_table(self._statement) or self._statement.word(1) in ("DATABASE", "SCHEMA")

    def _named(self, value: int) -> str:
        """The collation named at `value`, as the target has it."""
        name = self._statement.name(value)
        number = collation_number(name)
        return name if number is None else collation_name(self._collations.of_comparison(number, self._text))

    def _scope(self, index: int) -> tuple[int, int]:
        """From where to where a COLLATE belongs to the same thing as the words at `index`."""
        stop = len(self._statement.words)
        if not defines_table(self._statement):
            return 0, stop
        start = 0
        for definition in definitions(self._statement):
            if definition.start <= index < definition.stop:
                return definition.start, definition.stop
            start = max(start, definition.stop)
        return start, stop
