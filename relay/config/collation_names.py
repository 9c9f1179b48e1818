"""The collations that a view's settings name, instead of their numbers."""

from relay.config.text.problems import Wrong
from relay.view.rules.mariadb.status.source_collations import NUMBERS_BY_NAME
from relay.view.rules.mariadb.status.target_names import TARGET_NUMBERS


def numbered_collations(table: object) -> object:
    """Return `{ "utf8mb4_uca1400_ai_ci" = "utf8mb4_bin" }` with numbers in place of the names; what is no name, and no table, stays.

    Raises: Wrong for a name that no server is known to have, or that is two collations; and if one is named twice.
    """
    if not isinstance(table, dict):
        return table
    found: dict[object, object] = {}
    for source, target in table.items():
        number = _of_source(source) if isinstance(source, str) else source
        if number in found:
            raise Wrong(f"collation {str(source)[:80]} is there twice", "Leave one out")
        found[number] = _of_target(target) if isinstance(target, str) else target
    return found


def _of_source(name: str) -> str:
    shown, plain = name[:80], name.lower().replace("utf8_", "utf8mb3_")
    numbers = {names[plain] for names in (NUMBERS_BY_NAME, TARGET_NUMBERS) if plain in names}
    if len(numbers) > 1:
        one, other = NUMBERS_BY_NAME[plain], TARGET_NUMBERS[plain]
        raise Wrong(
            f"{shown} is another collation in MariaDB than in MySQL", f"Write {one} for MariaDB's, {other} for MySQL's"
        )
    return str(numbers.pop()) if numbers else name


def _of_target(name: str) -> object:
    if name.isdecimal():
        return name
    number = TARGET_NUMBERS.get(name.lower().replace("utf8_", "utf8mb3_"))
    if number is None:
        advice = "SELECT COLLATION_NAME FROM information_schema.COLLATIONS on a replica shows those that there are"
        raise Wrong(f"MySQL has no collation {name[:80]}", advice)
    return number
