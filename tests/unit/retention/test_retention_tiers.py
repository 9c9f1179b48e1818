"""min_free counts the room that a file takes on the disk: one in a bucket takes none."""

from relay.config.retention_section import RetentionSection
from relay.retention.decision import ArchiveFacts, HeldFile, HolderKind, Limit, RetentionFacts, decide
from relay.retention.retention_limits import RetentionLimits


def limits(**keys: str) -> RetentionLimits:
    return RetentionLimits.of(RetentionSection(**keys))  # type: ignore[arg-type]


def facts(*disk_bytes: int) -> RetentionFacts:
    files = [
        HeldFile(1, number, f"mysql-bin.{number:06d}", 100 << 20, float(number), on_disk)
        for number, on_disk in enumerate(disk_bytes, start=1)
    ]
    return RetentionFacts([ArchiveFacts("", files)], 100.0, free_bytes=0)


def test_packed_files_go_for_the_room_that_they_take() -> None:
    decision = decide(facts(25 << 20, 25 << 20, 25 << 20, 100 << 20, 100 << 20), limits(min_free="50MiB"))
    assert [one.file.number for one in decision.removals] == [1, 2]
    assert decision.held_back == ()


def test_files_in_the_bucket_are_not_removed_for_room_and_the_message_says_why() -> None:
    decision = decide(facts(0, 0, 25 << 20, 100 << 20), limits(min_free="50MiB"))
    assert decision.removals == ()
    [held] = decision.held_back
    assert (held.limit, held.hold.kind, held.file) == (Limit.MIN_FREE, HolderKind.BUCKET, "mysql-bin.000001")


def test_by_age_and_size_they_go_as_others() -> None:
    decision = decide(facts(0, 0, 25 << 20, 100 << 20), limits(keep_bytes="200MiB"))
    assert [(one.file.number, one.limit) for one in decision.removals] == [(1, Limit.KEEP_BYTES), (2, Limit.KEEP_BYTES)]
