"""The search for a transaction in an archive: by its GTID, or by the time it began. The relay may be running.

The catalog names the file, NAME.gtx the block of 64 KiB, and that block's bytes the offset; an index that is missing or cannot be
read costs a walk through its file.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from protocol.binlog.layout import FIRST_EVENT
from protocol.errors import Malformed
from protocol.gtid.file_gtids import FileGtidCollector, IndexBlock, gtid_text
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import DomainGtid, GtidList
from protocol.gtid.mysql_gtid import MysqlGtid
from relay.archive.catalog.catalog import Catalog
from relay.archive.gtids.gtid_recorder import collect, read_index
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.files import CATALOG_NAME, FileLayer, StoredFile
from relay.archive.storage.gtid_facts import GtidFacts
from relay.binlog_file.file_bytes import pieces
from relay.packed_reads.archive_layer import layer_of


@dataclass(frozen=True, slots=True)
class TransactionPlace:
    """A transaction's range [start, end) of its file; a replica may start from either. `gtid` None: it has none.

    `timestamp`: of its first event, s.
    """

    file: str
    start: int
    end: int
    gtid: str | None
    timestamp: int


def find_gtid(directory: Path, gtid: MysqlGtid | DomainGtid) -> TransactionPlace | None:
    """Return the transaction with this GTID, or None. Blocking. Raises: CatalogUnreadable; OSError."""
    if isinstance(gtid, MysqlGtid):
        key, number, flavour = gtid.tsid.key, gtid.gno, "mysql"
    else:
        key = gtid.domain_id.to_bytes(4, "little") + gtid.server_id.to_bytes(4, "little")
        number, flavour = gtid.sequence_number, "mariadb"
    layer = layer_of(directory)
    for file, facts in _files(directory):
        if file.flavour != flavour or not _may_hold(facts, gtid):
            continue
        path = directory / file.name
        block = _block_with(layer, path, file, facts, key, number)
        if block is not None:
            for place, found in _transactions(layer, path, file, block.start, block.stop):
                if found == (key, number):
                    return place
    return None


def find_time(directory: Path, timestamp: int) -> TransactionPlace | None:
    """Return the first transaction, in the archive's order, that began at `timestamp` (s) or later; None: there is none yet.

    Transactions begin in the order of the files except for seconds; one that precedes much older ones may be passed over. Blocking.
    Raises: CatalogUnreadable; OSError.
    """
    layer = layer_of(directory)
    for file, facts in _files(directory):
        if facts is not None and file.last_timestamp < timestamp:
            continue
        path = directory / file.name
        start = FIRST_EVENT
        try:
            index = read_index(layer, path)
            block = index.at_time(timestamp - 1) if index is not None else None
        except Malformed:
            block = None
        if block is not None:
            start = block.start
        for place, _gtid in _transactions(layer, path, file, start, file.end):
            if place.timestamp >= timestamp:
                return place
    return None


def _files(directory: Path) -> Iterator[tuple[ArchivedFile, GtidFacts | None]]:
    """Yield all files, oldest first; those that still grow have no facts and extend up to their present end."""
    catalog = Catalog.open_read_only(directory / CATALOG_NAME)
    try:
        files, gtids = catalog.files(), catalog.gtids()
    finally:
        catalog.close()
    for file in files:
        if not file.sealed:
            # Its end is put into the catalog once a second. After that only whole transactions are taken.
            file.end = (directory / file.name).stat().st_size
        yield file, gtids.get(file.number) if file.sealed else None


def _may_hold(facts: GtidFacts | None, gtid: MysqlGtid | DomainGtid) -> bool:
    if facts is None or facts.inside is None:
        return True
    inside = facts.inside
    if isinstance(inside, GtidSet):
        return isinstance(gtid, MysqlGtid) and gtid in inside
    return isinstance(gtid, DomainGtid) and _reaches(inside, gtid)


def _reaches(inside: GtidList, gtid: DomainGtid) -> bool:
    last = inside.server(gtid.domain_id, gtid.server_id)
    return last is not None and last.sequence_number >= gtid.sequence_number


def _block_with(
    layer: FileLayer, path: Path, file: ArchivedFile, facts: GtidFacts | None, key: bytes, number: int
) -> IndexBlock | None:
    try:
        if facts is not None and facts.inside is not None:
            index = read_index(layer, path)
            found = None if index is None else index.find(key, number)
            # A MySQL file that is known to contain it has it, whatever its index says.
            if found is not None or (index is not None and isinstance(facts.inside, GtidList)):
                return found
    except Malformed:
        pass
    try:
        collector, blocks = collect(layer, path, file, FIRST_EVENT if facts is not None else file.end)
    except Malformed:
        return None
    opened = collector.open_block()
    if opened is not None:
        blocks.append(opened)
    return next((block for block in blocks if block.has(key, number)), None)


def _transactions(
    layer: FileLayer, path: Path, file: ArchivedFile, start: int, stop: int
) -> Iterator[tuple[TransactionPlace, tuple[bytes, int] | None]]:
    """Yield the transactions in [start, stop), with key and number of those that have a GTID."""
    collector = FileGtidCollector(file.flavour, checksum=file.checksum == 1, gap_bytes=0)
    collector.begin(start)
    with StoredFile.open(layer, path) as stored:
        at = start
        for data in pieces(stored, start, stop):
            at += len(data)
            try:
                collector.take(data)
            except Malformed:
                break
            if at >= stop:
                collector.finish()
            for block in collector.take_blocks():
                run = block.runs[0] if block.runs else None
                gtid = None if run is None else (run.key, run.first)
                text = None if gtid is None else gtid_text(*gtid)
                yield TransactionPlace(file.name, block.start, block.stop, text, block.timestamp), gtid
