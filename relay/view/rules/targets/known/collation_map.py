"""The view's choice of a collation of the target for one that only the source has."""

from collections.abc import Mapping

from relay.view.rules.targets.known.target import Target
from relay.view.rules.targets.known.target_collations import GENERAL, collation_name, is_known, of_same_charset
from relay.view.stops import statement_stops


class CollationMap:
    """Maps the collation numbers of a group. The `text` of its methods is the statement, for messages."""

    def __init__(self, chosen: Mapping[int, int], target: Target) -> None:
        self._chosen = chosen
        self._target = target

    def of_comparison(self, collation: int, text: bytes) -> int:
        """Return the number for comparisons and definitions of columns, as configured. Raises: Untranslatable where it is not."""
        if is_known(collation, self._target):
            return collation
        chosen = self._chosen.get(collation)
        if chosen is None:
            instead = f"name one that it has in the view's `collations`, such as {collation} = 45 (utf8mb4_general_ci)"
            way = f"{instead}: which texts are equal, and their order, differ there"
            raise statement_stops.collation_missing(self._target.title, collation_name(collation), way, needs=text)
        if not is_known(chosen, self._target):
            wrong = f"{collation_name(chosen)}, which {self._target.title} does not have either"
            raise statement_stops.collation_mapped_wrong(self._target.title, collation_name(collation), wrong)
        return chosen

    def of_charset(self, collation: int, text: bytes) -> int:
        """Return the number where only the character set matters: any with the same. Raises: Untranslatable for a missing set."""
        found = of_same_charset(collation, self._target)
        return self.of_comparison(collation, text) if found is None else found

    def of_nothing(self, collation: int) -> int:
        """Return the number where it does not matter at all: BEGIN, COMMIT and so on."""
        return collation if is_known(collation, self._target) else GENERAL
