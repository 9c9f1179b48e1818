"""The limits of `[retention]` as numbers."""

from dataclasses import dataclass

from relay.config.retention_section import RetentionSection
from relay.config.text.amounts import size_bytes, time_s


@dataclass(frozen=True, slots=True)
class RetentionLimits:
    """Times in seconds, sizes in bytes; None: no such limit. `section`: as they are written in relay.toml."""

    section: RetentionSection
    keep_for_s: float | None
    keep_bytes: int | None
    min_free_bytes: int | None
    keep_at_least_s: float
    forget_replicas_after_s: float

    @classmethod
    def of(cls, section: RetentionSection) -> "RetentionLimits":
        """Return the limits of the section."""
        return cls(
            section,
            keep_for_s=time_s(section.keep_for) if section.keep_for is not None else None,
            keep_bytes=size_bytes(section.keep_bytes) if section.keep_bytes is not None else None,
            min_free_bytes=size_bytes(section.min_free) if section.min_free is not None else None,
            keep_at_least_s=time_s(section.keep_at_least) if section.keep_at_least is not None else 0.0,
            forget_replicas_after_s=time_s(section.forget_replicas_after),
        )

    @property
    def written(self) -> dict[str, str | None]:
        """The limits as relay.toml has them, by key; None: it has none."""
        names = ("keep_for", "keep_bytes", "min_free", "keep_at_least")
        return {name: getattr(self.section, name) for name in names}
