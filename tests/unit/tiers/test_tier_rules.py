"""[archive.tiers]: which files move, by age and bytes."""

from relay.archive.storage.storage_location import Tier
from relay.config.tiers_section import TiersSection
from relay.tiers.tier_rules import TierFile, TierRules, wanted_moves

DAY = 86400.0
NOW = 100 * DAY


def file(name: str, tier: Tier, days_old: float, *, size: int = 100, may_move: bool = True) -> TierFile:
    return TierFile(1, name, tier, size, size // 4, NOW - days_old * DAY, may_move)


def moves(files: list[TierFile], rules: TierRules) -> list[tuple[str, Tier]]:
    return [(move.file.name, move.to) for move in wanted_moves(files, rules, NOW)]


def test_what_is_old_is_packed_and_what_is_older_goes_to_the_bucket() -> None:
    rules = TierRules.of(TiersSection(cold_after="2d", object_after="14d"))
    files = [
        file("a", Tier.OBJECT, 40),
        file("b", Tier.COLD, 20),
        file("c", Tier.COLD, 10),
        file("d", Tier.HOT, 3),
        file("e", Tier.HOT, 1),
    ]
    assert moves(files, rules) == [("b", Tier.OBJECT), ("d", Tier.COLD)]


def test_the_oldest_go_while_there_is_too_much() -> None:
    rules = TierRules(hot_bytes=250, cold_bytes=30)
    files = [file(name, Tier.COLD, 9) for name in "ab"] + [file(name, Tier.HOT, 1) for name in "cdef"]
    assert moves(files, rules) == [("a", Tier.OBJECT), ("c", Tier.COLD), ("d", Tier.COLD)]


def test_what_may_not_move_stays_and_counts() -> None:
    rules = TierRules(hot_bytes=150)
    files = [file("a", Tier.HOT, 9, may_move=False), file("b", Tier.HOT, 8), file("c", Tier.HOT, 7)]
    assert moves(files, rules) == [("b", Tier.COLD), ("c", Tier.COLD)]


def test_a_rule_for_the_bucket_alone_packs_what_goes_there() -> None:
    rules = TierRules(object_after_s=5 * DAY)
    assert moves([file("a", Tier.HOT, 9), file("b", Tier.HOT, 1)], rules) == [("a", Tier.COLD)]


def test_a_file_without_a_time_is_moved_by_no_rule_of_age() -> None:
    unknown = TierFile(1, "a", Tier.HOT, 100, 100, 0.0, True)
    assert moves([unknown], TierRules(cold_after_s=DAY)) == []
    assert moves([unknown], TierRules(hot_bytes=10)) == [("a", Tier.COLD)]
