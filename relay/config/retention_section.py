"""`[retention]`: the time until which archived binlogs are kept, and who keeps them longer."""

from typing import Annotated

from pydantic import AfterValidator

from relay.config.text.amounts import checked_size, checked_time
from relay.config.toml_section import TomlSection

Time = Annotated[str, AfterValidator(checked_time)]
Size = Annotated[str, AfterValidator(checked_size)]


class RetentionSection(TomlSection):
    """The archived binlogs that the relay removes by itself, the oldest first, and those that it keeps nevertheless."""

    keep_for: Time | None = None
    """A file goes when its newest event is older than this. Days (`d`) or hours (`h`). Time is counted back from the newest
    event in the archive: while the source is silent nothing goes by age. Left out: age removes nothing. Example: `"30d"`"""
    keep_bytes: Size | None = None
    """The oldest files go while all binlogs together have more bytes than this; those of each view are counted for
    themselves. `KiB`, `MiB`, `GiB` or `TiB`. Left out: size removes nothing. Example: `"500GiB"`"""
    min_free: Size | None = None
    """The oldest files go while the file system of the archive has less room than this, also younger ones than `keep_for`
    says. `KiB`, `MiB`, `GiB` or `TiB`. Left out: a full disk removes nothing. Example: `"50GiB"`"""
    keep_at_least: Time | None = None
    """Files whose newest event is younger than this are not removed, whatever `keep_bytes` and `min_free` say. Days (`d`) or hours
    (`h`). Left out: only files that are still needed are protected from them. Example: `"2d"`"""
    keep_for_replicas: bool = True
    """`true`: binlogs that a known replica has not received yet are kept, also while it is not connected. `false`: only for connected
    ones. Example: `false`"""
    forget_replicas_after: Time = "7d"
    """A replica that has not been connected for so long, in time that the relay ran, keeps nothing any more. Days (`d`) or
    hours (`h`). Example: `"14d"`"""
    keep_for_views: bool = True
    """`true`: binlogs that a view has not been built from yet are kept, also while the view is stopped. `false`: a stopped view keeps
    nothing, and may have to be rebuilt. Example: `false`"""

    @property
    def removes(self) -> bool:
        """True if anything is ever removed."""
        return self.keep_for is not None or self.keep_bytes is not None or self.min_free is not None
