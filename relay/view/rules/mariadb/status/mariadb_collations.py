"""The replicas' collation for each that a MariaDB has: the one in the view's settings, else the same one, else the nearest."""

from collections.abc import Mapping
from typing import Final

from protocol.binlog.schema.collation_names import compiled_collation
from relay.view.rules.mariadb.status.nearest_collations import is_alike, nearest
from relay.view.rules.mariadb.status.source_collations import (
    NUMBERS_BY_NAME,
    SOURCE_COLLATIONS,
    SourceCollation,
    charset_in,
    plain_charset,
)
from relay.view.rules.mariadb.status.target_names import TARGET_NAMES, TARGET_NUMBERS
from relay.view.rules.targets.known.target import Target
from relay.view.stops import statement_stops
from relay.view.stops.stop_reason import NEWER_RELAY

_UCA1400: Final = "uca1400_"
_OLD_NAME: Final = "utf8_"
_SILENT_FROM: Final = 2048
"""The first number of collations whose statements MySQL skips without an error."""


class MariadbCollations:
    """Maps collations. `chosen` is the settings' `collations`, by number. `target` is the replicas' version, 8.0 or later: all have the
    same.

    A collation that is not described here, and one without any mapping, raises Untranslatable: a server skips statements with numbers
    that it does not know, some of them silently.
    """

    def __init__(self, chosen: Mapping[int, int], target: Target) -> None:
        self.title = target.title
        self._chosen = chosen
        self._numbers = {number: self._given(one, chosen) for number, one in SOURCE_COLLATIONS.items()}
        self._wrong = {
            number: chosen[number]
            for number, given in self._numbers.items()
            if number in chosen and given != chosen[number]
        }

    @staticmethod
    def _given(source: SourceCollation, chosen: Mapping[int, int]) -> int:
        """Return the replicas' number; 0: there is no suitable one."""
        if source.number in chosen:
            name = TARGET_NAMES.get(chosen[source.number], "")
            return chosen[source.number] if charset_in(name) == source.charset else 0
        if source.number in TARGET_NAMES:
            return source.number
        return TARGET_NUMBERS.get(nearest(source), 0)

    def is_same(self, number: int) -> bool:
        """Return whether the replicas have the collation itself."""
        return self._numbers.get(number) == number

    def compares_alike(self, number: int) -> bool:
        """Return whether a statement that compares by it finds the same rows on the replicas, except for rare characters."""
        if self.is_same(number):
            return True
        return number not in self._chosen and number in SOURCE_COLLATIONS and is_alike(SOURCE_COLLATIONS[number])

    def is_alike(self, collation: str, charset: str, defaults: Mapping[int, int]) -> bool | None:
        """Return the same for a name in a definition, or where that is empty for the character set's own; None: it is unknown.

        `defaults` is the `TranslatedStatus.defaults` of the statement that compares, used for that of the one that defined the column:
        a source nearly always has the same ones.
        """
        number = _number_named(collation, charset, defaults)
        return None if number is None else self.compares_alike(number)

    def is_same_named(self, collation: str, charset: str, defaults: Mapping[int, int]) -> bool:
        """Return whether the replicas have the very collation; False if it is unknown. The arguments are those of `is_alike`."""
        number = _number_named(collation, charset, defaults)
        return number is not None and self.is_same(number)

    def charset_of(self, number: int) -> tuple[str, str]:
        """Return the character set of a collation of the source, and its name; ("", ""): it is not known."""
        found = SOURCE_COLLATIONS.get(number)
        return (found.charset, found.name) if found is not None else ("", "")

    def number_of(self, number: int) -> int:
        """Return the number where texts are compared by it, or columns defined. Raises: Untranslatable."""
        given = self._numbers.get(number, 0)
        if given:
            return given
        if number in self._wrong:
            chosen = self._wrong[number]
            name = TARGET_NAMES.get(chosen)
            why = f"which is of another character set ({name})" if name else f"which {self.title} does not have"
            raise statement_stops.collation_mapped_wrong(self.title, _shown(number), f"{chosen}, {why}")
        error = statement_stops.UNKNOWN_COLLATION if number < _SILENT_FROM else 0
        raise statement_stops.collation_missing(self.title, _shown(number), _instead(number, self.title), error=error)

    def number_of_charset(self, number: int) -> int:
        """Return the number where only the character set matters. Raises: Untranslatable for one that no MariaDB is known to have."""
        given = self._numbers.get(number, 0)
        if given or number not in SOURCE_COLLATIONS:
            return given or self.number_of(number)
        charset = plain_charset(SOURCE_COLLATIONS[number].charset)
        return NUMBERS_BY_NAME[_full_name(compiled_collation(charset))]

    def name_of(self, name: str, charset: str = "") -> str:
        """Return the replicas' name for one in a statement of the source, unchanged where it means the same in MySQL.

        `charset` is that before it, such as `utf8mb4`, for names that leave it out (`uca1400_ai_ci`); "": not known.

        Raises: Untranslatable.
        """
        full = _full_name(name.lower(), charset.lower())
        number = NUMBERS_BY_NAME.get(full)
        if number is None:
            way = "name it at the source with its character set first, such as utf8mb4_uca1400_ai_ci"
            raise statement_stops.collation_name_unknown(self.title, f"the collation {name[:80]}", way)
        given = TARGET_NAMES[self.number_of(number)]
        return name if given == full else given

    def default_of(self, charset: str, defaults: Mapping[int, int]) -> str:
        """Return the replicas' collation for a character set that a statement names without one, by `TranslatedStatus.defaults`.

        Raises: Untranslatable.
        """
        full = _full_name(compiled_collation(plain_charset(charset.lower())))
        number = NUMBERS_BY_NAME.get(full)
        if number is None:
            way = "name the collation in the statement"
            raise statement_stops.collation_name_unknown(self.title, f"the character set {charset[:80]}", way)
        return TARGET_NAMES[self.number_of(defaults.get(number, number))]


def _shown(number: int) -> str:
    found = SOURCE_COLLATIONS.get(number)
    return f"{number} ({found.name})" if found is not None else f"number {number}"


def _instead(number: int, title: str) -> str:
    """Return the advice where the replicas have nothing for the collation."""
    found = SOURCE_COLLATIONS.get(number)
    if found is None:
        return NEWER_RELAY
    if not found.is_nopad:
        return "name one for it in the view's `collations`"
    base = TARGET_NAMES.get(found.number - 1024, f"{found.charset}_bin")
    return (
        f'name one for it in the view\'s `collations`, such as "{found.name}" = "{base}", if no key has texts that differ in trailing '
        f"spaces alone: {title} compares them as equal"
    )


def _number_named(collation: str, charset: str, defaults: Mapping[int, int]) -> int | None:
    """Return the number of a column's collation, or, if it has no name, of the character set's own; None: not known."""
    if collation:
        number = NUMBERS_BY_NAME.get(_full_name(collation.lower(), charset.lower()))
        if number is None and not charset and collation.lower().startswith(_UCA1400):
            number = NUMBERS_BY_NAME.get(_full_name(collation.lower(), "utf8mb4"))
        return number
    number = NUMBERS_BY_NAME.get(_full_name(compiled_collation(plain_charset(charset.lower()))))
    return defaults.get(number, number) if number is not None else None


def _full_name(name: str, charset: str = "") -> str:
    """Return the name as in `SourceCollation.name`: `utf8_` is `utf8mb3_`, and a name may leave out its character set."""
    if name.startswith(_OLD_NAME):
        return "utf8mb3_" + name.removeprefix(_OLD_NAME)
    if name.startswith(_UCA1400):
        return f"{'utf8mb3' if charset == 'utf8' else charset}_{name}"
    return name
