"""The rules that build a view are chosen by its settings and by the kind of its source."""

from relay.view.rules.group import GroupRules
from relay.view.rules.group_rules import MysqlRules
from relay.view.rules.mariadb.mariadb_rules import MariadbRules
from relay.view.rules.mariadb.parts import parts_of
from relay.view.rules.older_tables import TablesBefore
from relay.view.rules.settings import MARIADB, TARGETS, ViewSettings
from relay.view.rules.targets.target_rules import TargetRules


def rules_of(settings: ViewSettings, before: TablesBefore | None = None) -> GroupRules:
    """Return new rules, which know no tables yet. `before` knows tables from before the archive."""
    if settings.flavour == MARIADB:
        made = MariadbRules(settings, parts_of(settings))
        made.before = before
        return made
    rules = MysqlRules(settings)
    rules.before = before
    return rules if settings.target == TARGETS[-1] else TargetRules(settings, rules)
