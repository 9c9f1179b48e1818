"""Character sets and collations that definitions name, and those that they imply where they name none."""

from typing import Final

from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.tables.ddl_statement import Attribute, CharsetOption, TableOption
from protocol.sql.tables.table_options import charset_option
from relay.view.rules.mariadb.statement.editable_statement import EditableStatement

_OF_ANY_SET: Final = "uca1400_"


def plain_charset(name: str) -> str:
    """Return the set's name, with `utf8` as utf8mb3, its meaning by both servers' defaults."""
    lower = name.lower()
    return "utf8mb3" if lower == "utf8" else lower


def replace_collation(words: EditableStatement, index: int, charset: str) -> str:
    """Replace the collation named at a place by the target's; `charset` is that of the text, "": not known. Raises: Untranslatable;
    UnsupportedSyntax where a name fits several sets and the intended one is not known."""
    named = words.text_of(words.tokens[index]).lower()
    if named in ("default", "binary"):
        return named
    full = f"utf8mb3_{named.removeprefix('utf8_')}" if named.startswith("utf8_") else named
    if named.startswith(_OF_ANY_SET):
        if not charset:
            raise UnsupportedSyntax(f"the collation {named} is of any character set, and it is not known of which here")
        full = f"{charset}_{named}"
    made = words.context.collations.name_of(full)
    if made != full:
        words.put(index, made)
    return made


def needs_collation(words: EditableStatement, charset: str) -> str:
    """Return the collation to write after a bare `CHARACTER SET charset`; "" where MySQL means the same by itself."""
    charset = plain_charset(charset)
    if charset in ("binary", "default"):
        return ""
    meant = words.context.collations.default_of(charset, words.context.defaults)
    return "" if meant == _DEFAULTS_OF_MYSQL.get(charset, meant) else meant


_DEFAULTS_OF_MYSQL: Final = {
    "utf8mb3": "utf8mb3_general_ci", "utf8mb4": "utf8mb4_general_ci", "ucs2": "ucs2_general_ci", "utf16": "utf16_general_ci",
    "utf16le": "utf16le_general_ci", "utf32": "utf32_general_ci",
}  # fmt: skip
"""The defaults that may differ: those of an applier where the event says nothing of utf8mb4."""


class CharsetClauses:
    """The clauses of a column, of a table's options, of a database, of CONVERT TO: a missing COLLATE is written out."""

    def __init__(self, words: EditableStatement) -> None:
        self._words = words
        self.charset = ""
        self._set_at = -1
        self._collates: list[int] = []
        self._binary = False

    def accept(self) -> bool:
        """Take [DEFAULT] CHARACTER SET or COLLATE; return False if none follows."""
        if not charset_option(self._words, CharsetOption()):
            return False
        self.add(self._words.written.options[-1])
        return True

    def add(self, option: TableOption | Attribute) -> None:
        """Add a clause that was read."""
        at = self._words.index_at(option.value)
        if option.name == "COLLATE":
            self._collates.append(at)
        else:
            self.charset, self._set_at = plain_charset(self._words.text_of(self._words.tokens[at])), at

    def mean(self, charset: str, at: int) -> None:
        """Note that the word there means a character set, as ASCII and NATIONAL do."""
        self.charset, self._set_at = charset, at

    def take_binary(self) -> None:
        """Take BINARY, which means the set's collation by bytes."""
        self._binary = True

    @property
    def is_said(self) -> bool:
        """True if there was any clause."""
        return self._set_at >= 0 or bool(self._collates)

    def done(self, outer: str = "", behind: int | None = None) -> None:
        """Edit the clauses. `outer` is the character set of their surroundings; "": not known. `behind` is the first place where
        COLLATE may be, such as after the length of NCHAR."""
        named = next((self._of_collation(at) for at in self._collates if self._of_collation(at)), "")
        for at in self._collates:
            replace_collation(self._words, at, self.charset or named or outer)
        if self._set_at < 0 or self._collates or self._binary:
            return
        collation = needs_collation(self._words, self.charset)
        if collation:
            self._words.after(max(self._set_at, behind or 0), f" COLLATE {collation}")

    def _of_collation(self, at: int) -> str:
        """Return the set that a collation's name begins with; "" for a name that fits any."""
        name = self._words.text_of(self._words.tokens[at]).lower()
        return "" if name.startswith((_OF_ANY_SET, "default")) else plain_charset(name.partition("_")[0])
