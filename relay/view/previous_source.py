"""The state that a view keeps of a former source where it continues with another one."""

from relay.view.rules.settings import FIRST_GNO, ViewSettings
from relay.view.stops.stop_reason import StopReason, Untranslatable
from relay.view.view_checkpoint import ViewCheckpoint
from relay.view.view_rules import rules_of


def checkpoint_after_source(settings: ViewSettings, known: bytes) -> ViewCheckpoint:
    """Return the beginning of the other source's first file. `known` is the rules' state at the end of the former one. The view depends
    on the other's binlogs alone, except for numbers of a MariaDB, whose binlogs do not say which the view assigned. Raises:
    Untranslatable.
    """
    return first_checkpoint(rules_of(settings).after_source(known))


def first_checkpoint(rules: bytes) -> ViewCheckpoint:
    """Return the checkpoint before the first file of a source, with the state of the rules."""
    return ViewCheckpoint.of_file(FIRST_GNO, rules)


def why_not_after_source(settings: ViewSettings, known: bytes) -> StopReason | None:
    """Return why a view cannot continue with another source; None: it can, as far as the rules are concerned."""
    try:
        checkpoint_after_source(settings, known)
    except Untranslatable as error:
        return error.reason
    return None
