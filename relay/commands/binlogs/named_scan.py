"""A binlog that is named on the command line, opened for a pass over it: a file, a packed one, or a URL of an object."""

from functools import partial
from pathlib import Path

from relay.binlog_file.binlog_scan import BinlogScan
from relay.packed.packed_facts import plain_name


def scan_of(path: Path) -> BinlogScan:
    """Open the binlog. Raises: Unreadable."""
    place = str(path)
    if plain_name(path.name) is None and path.exists():
        return BinlogScan(path)
    # Readers of plain files need not wait until all this is imported.
    from relay.packed_reads.named_binlog import bucket_url, open_binlog

    return BinlogScan(Path(bucket_url(place) or place), opened=partial(open_binlog, place))
