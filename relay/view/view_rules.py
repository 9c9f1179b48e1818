"""Which rules make a view, by its settings."""

from relay.view.rules.group import GroupRules
from relay.view.rules.group_rules import MysqlRules
from relay.view.rules.settings import ViewSettings


def rules_of(settings: ViewSettings) -> GroupRules:
    """New ones, which know no tables yet."""
    return MysqlRules(settings)
