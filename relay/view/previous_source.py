"""What a view knows of a former source where another one goes on."""

from relay.view.rules.settings import FIRST_GNO, ViewSettings
from relay.view.stops.stop_reason import StopReason, Untranslatable
from relay.view.view_checkpoint import ViewCheckpoint
from relay.view.view_rules import rules_of


def behind_source(settings: ViewSettings, known: bytes) -> ViewCheckpoint:
    """The beginning of the other one's first file. known: the rules' state at the end of the former one. What is made depends on the
    other's binlogs alone, but for the numbers of a MariaDB, of which it does not say which the view gave. Raises: Untranslatable.
    """
    return begun_behind(rules_of(settings).after_source(known))


def begun_behind(rules: bytes) -> ViewCheckpoint:
    """The same with what is known there."""
    return ViewCheckpoint.of_file(FIRST_GNO, rules)


def why_not_behind(settings: ViewSettings, known: bytes) -> StopReason | None:
    """Why a view cannot go on with another source; None: it can, as far as the rules are concerned."""
    try:
        behind_source(settings, known)
    except Untranslatable as error:
        return error.reason
    return None
