"""The texts for people about a removal, and about what is kept."""

from typing import Final

from relay.retention.decision import HeldBack, HolderKind, Limit
from relay.retention.retention_limits import RetentionLimits

_ADVICE: Final = {
    HolderKind.NEWEST: "The newest file always stays: raise the limit, or give the archive a larger disk.",
    HolderKind.READER: "Let the connection go on, or end it (KILL) if nobody needs it.",
    HolderKind.REPLICA: "Bring the replica back, or, if it is gone for good, lower retention.forget_replicas_after and send SIGHUP.",
    HolderKind.VIEW: '"binlog-relay view list" says why the view is not made further; with keep_for_views = false a stopped one '
    "keeps nothing.",
    HolderKind.BUCKET: "Lower the limits of [archive.tiers], so that files leave the disk; keep_for and keep_bytes remove those in the "
    "bucket too.",
    HolderKind.MIRROR: "The bucket of [archive.mirror] must follow: /api/v1/mirror says what keeps it. When the disk is nearly full "
    "the files go all the same, and the copy has a hole.",
    HolderKind.YOUNG: "Lower keep_at_least, or give the archive a larger disk.",
}


def archive_text(name: str) -> str:
    """Return the words for a view, or for the source's own archive."""
    return f"view {name}" if name else "the archive"


def size_text(size: int) -> str:
    """Return a size such as 12.3 GiB."""
    value, unit = float(size), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{size} bytes" if unit == "bytes" else f"{value:.1f} {unit}"


def limit_text(limit: Limit, limits: RetentionLimits) -> str:
    """Return the limit as it is written in relay.toml."""
    return f'{limit.value} = "{getattr(limits.section, limit.value)}"'


def removal_reason(limit: Limit, limits: RetentionLimits, free_bytes: int | None) -> str:
    """Return the reason for the ledger."""
    why = {
        Limit.KEEP_FOR: "its newest event is older",
        Limit.KEEP_BYTES: "the binlogs together were larger",
        Limit.MIN_FREE: f"{size_text(free_bytes or 0)} were free",
    }
    return f"[retention] {limit_text(limit, limits)}: {why[limit]}"


def held_back_text(one: HeldBack, limits: RetentionLimits) -> str:
    """Return the sentence that says which limit is not met, and what keeps which files."""
    files = "1 file" if one.files == 1 else f"{one.files} files"
    missing = f", {size_text(one.missing_bytes)} of room are missing" if one.limit is Limit.MIN_FREE else ""
    return (
        f"{limit_text(one.limit, limits)} cannot be kept in {archive_text(one.archive)}{missing}: {one.file} and what follows "
        f"({files}, {size_text(one.size_bytes)}) is kept, as {who_text(one)}"
    )


def who_text(one: HeldBack) -> str:
    """Return who keeps the file."""
    return one.hold.who if one.hold.kind is not HolderKind.YOUNG else f"it is younger than {one.hold.who} says"


def advice(one: HeldBack) -> str:
    """Return the next step."""
    return _ADVICE[one.hold.kind]
