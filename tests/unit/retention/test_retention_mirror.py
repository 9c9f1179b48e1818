"""What the bucket of [archive.mirror] has not yet stays on the disk, as long as the disk has room for it."""

import pytest

from relay.config.retention_section import RetentionSection
from relay.retention.decision import ArchiveFacts, HeldFile, Hold, HolderKind, Limit, RetentionFacts, decide
from relay.retention.retention_limits import RetentionLimits
from relay.retention.retention_texts import advice, held_back_text

MIB = 1 << 20
UNCOPIED = Hold(HolderKind.MIRROR, "it is not in the bucket of [archive.mirror] yet", (1, 3))
KEEP: list[dict[str, str]] = [{"keep_bytes": "200MiB"}, {"keep_for": "1h"}]


def limits(**keys: str) -> RetentionLimits:
    return RetentionLimits.of(RetentionSection(**keys))  # type: ignore[arg-type]


def facts(free: int, *more: Hold, floor: int = 1000 * MIB) -> RetentionFacts:
    """Eight files of 100 MiB; the bucket has the first two."""
    files = [HeldFile(1, number, f"mysql-bin.{number:06d}", 100 * MIB, float(number)) for number in range(1, 9)]
    return RetentionFacts([ArchiveFacts("", files, (UNCOPIED, *more))], 100_000.0, free * MIB, floor)


@pytest.mark.parametrize("section", KEEP, ids=str)
def test_a_file_that_is_not_in_the_bucket_stays_and_the_message_says_why(section: dict[str, str]) -> None:
    decision = decide(facts(5000), limits(**section))
    assert [one.file.number for one in decision.removals] == [1, 2]
    [held] = decision.held_back
    assert (held.hold.kind, held.file) == (HolderKind.MIRROR, "mysql-bin.000003")
    assert "is not in the bucket of [archive.mirror] yet" in held_back_text(held, limits(**section))
    assert "the copy has a hole" in advice(held)


@pytest.mark.parametrize("section", KEEP, ids=str)
def test_a_disk_that_becomes_full_wins_and_only_as_much_goes_as_has_to(section: dict[str, str]) -> None:
    # 250 MiB are missing when the first two are gone.
    decision = decide(facts(550), limits(**section))
    assert [(one.file.number, one.also_uncopied) for one in decision.removals] == [
        *((1, False), (2, False)),
        *((3, True), (4, True), (5, True)),
    ]


def test_no_more_goes_for_the_disk_than_the_limits_want_gone() -> None:
    decision = decide(facts(0), limits(keep_bytes="400MiB"))
    assert [one.file.number for one in decision.removals] == [1, 2, 3, 4]


def test_min_free_does_not_wait_for_the_bucket() -> None:
    decision = decide(facts(0, floor=0), limits(min_free="350MiB"))
    assert [(one.file.number, one.limit) for one in decision.removals] == [
        (number, Limit.MIN_FREE) for number in range(1, 5)
    ]


def test_who_reads_a_file_keeps_it_from_a_full_disk_too() -> None:
    reader = Hold(HolderKind.READER, "connection 7 reads it", (1, 4))
    decision = decide(facts(0, reader), limits(keep_bytes="100MiB", min_free="1TiB"))
    assert [one.file.number for one in decision.removals] == [1, 2, 3]
    kinds = {(one.limit, one.hold.kind) for one in decision.held_back}
    assert kinds == {(Limit.KEEP_BYTES, HolderKind.MIRROR), (Limit.MIN_FREE, HolderKind.READER)}
