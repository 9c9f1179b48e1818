"""The view's choice of a collation of the target for one that only the source has."""

from collections.abc import Mapping

from relay.view.rules.targets.known import target_stops
from relay.view.rules.targets.known.target import Target
from relay.view.rules.targets.known.target_collations import GENERAL, is_known, of_same_charset


class CollationMap:
    """What the numbers of a group become. text, everywhere: the statement, for messages."""

    def __init__(self, chosen: Mapping[int, int], target: Target) -> None:
        self._chosen = chosen
        self._target = target

    def of_comparison(self, collation: int, text: bytes) -> int:
        """For where texts are compared or columns defined: as configured. Raises: CannotBeKept where nothing is."""
        if is_known(collation, self._target):
            return collation
        chosen = self._chosen.get(collation)
        if chosen is None:
            target_stops.collation_missing(collation, text, self._target)
        if not is_known(chosen, self._target):
            target_stops.collation_mapped_wrong(collation, chosen, self._target)
        return chosen

    def of_charset(self, collation: int, text: bytes) -> int:
        """For where only the character set matters: any with the same. Raises: CannotBeKept for a set that the target lacks."""
        found = of_same_charset(collation, self._target)
        return self.of_comparison(collation, text) if found is None else found

    def of_nothing(self, collation: int) -> int:
        """For where it does not matter at all: BEGIN, COMMIT and so on."""
        return collation if is_known(collation, self._target) else GENERAL
