"""The relay's own machine: the archive's disk, its ports, descriptors. Blocking, all of it."""

import os
import re
import resource
import statistics
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from protocol.printable import printable
from relay.archive.storage.files import LOCK_NAME, TEMPORARY_SUFFIX, FileLayer
from relay.commands.archive_place import try_archive_place
from relay.commands.outcome import CommandFailed
from relay.config import Config
from relay.disk.file_calls import make_new_file, remove_file
from relay.doctor.doctor_line import DoctorLine
from relay.doctor.port_checks import http_lines, port_line
from relay.doctor.retention_checks import DiskRoom, retention_lines
from relay.process.descriptors import wanted_descriptors
from relay.process.shown_amounts import shown_bytes

_SYNCS: Final = 20
_SYNC_TIME_S: Final = 3.0
_SLOW_SYNC_S: Final = 0.05
_DAY_S: Final = 86_400
_LEAST_FREE: Final = 64 << 20
"""Bytes. With less, a disk is as good as full, whatever the source writes."""
_DAYS_PROBLEM: Final = 2.0
_DAYS_WARNING: Final = 14.0
_IN_MEMORY: Final = ("tmpfs", "ramfs")
_OVER_THE_NETWORK: Final = ("nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "9p")
_ABOUT: Final = "this machine"


def relay_pid(archive: Path) -> int | None:
    """Return the process that has the archive open for writing; None: none is visible from here. It changes nothing."""
    try:
        found = os.stat(archive / LOCK_NAME)
        text = Path("/proc/locks").read_text(encoding="ascii")
    except OSError:
        return None
    inode = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    match = re.search(rf"^\d+: FLOCK +\w+ +WRITE +(\d+) {inode} ", text, re.MULTILINE)
    return int(match[1]) if match is not None else None


def machine_lines(config: Config, rate_bytes_s: float | None, source_bytes: int | None) -> Iterator[DoctorLine]:
    """Yield the lines. rate_bytes_s: what the source writes in binlogs; None: unknown. source_bytes: the binlogs there that must
    still be fetched."""
    pid = relay_pid(config.archive_directory)
    yield _running(pid)
    yield from _archive_lines(config, rate_bytes_s, source_bytes)
    yield port_line("listen", config.listen.host, config.listen.port, pid)
    yield from http_lines(config, pid)
    yield _descriptor_line(config, pid)


def _running(pid: int | None) -> DoctorLine:
    what = "no relay has this archive open" if pid is None else f"the relay runs on this archive (process {pid})"
    return DoctorLine(_ABOUT, "relay", "ok", what)


def _archive_lines(config: Config, rate_bytes_s: float | None, source_bytes: int | None) -> Iterator[DoctorLine]:
    directory = config.archive_directory
    about = f"archive {directory}"
    try:
        try_archive_place(directory)
    except CommandFailed as failure:
        yield DoctorLine(
            about, "writable", "problem", printable(str(failure)), "As said; run doctor as the relay's user."
        )
        return
    yield DoctorLine(about, "writable", "ok", "files can be made, written and synced")
    place = next(place for place in (directory, *directory.parents) if place.exists())
    kind = _file_system(place)
    if kind in _IN_MEMORY:
        text = f"{kind}: in memory, gone when this machine restarts"
        yield DoctorLine(about, "file_system", "warning", text, "Put archive.dir on a disk.")
    elif kind in _OVER_THE_NETWORK:
        text = f"{kind}: over the network, a server that is away stops the archive"
        yield DoctorLine(about, "file_system", "warning", text, "Put archive.dir on a disk of this machine.")
    else:
        yield DoctorLine(about, "file_system", "ok", kind or "not known")
    yield _sync_line(about, place)
    try:
        kept = list(retention_lines(config, DiskRoom.of(directory), rate_bytes_s))
    except OSError as error:
        kept = [DoctorLine("retention", "retention", "unknown", f"the disk cannot be asked: {error.strerror}")]
    is_bounded = config.retention.removes and all(line.level in ("ok", "warning") for line in kept)
    yield space_line(about, FileLayer().free_bytes(place), rate_bytes_s, source_bytes, is_bounded=is_bounded)
    yield from kept


def _sync_line(about: str, place: Path) -> DoctorLine:
    try:
        took = _sync_times(place)
    except OSError as error:
        cure = "Run doctor as the relay's user."
        return DoctorLine(about, "fsync", "unknown", f"not measured in {place}: {error.strerror}", cure)
    return sync_verdict(about, statistics.median(took), max(took))


def sync_verdict(about: str, median_s: float, longest_s: float) -> DoctorLine:
    """Return the line about the time of a sync."""
    text = f"a sync of 4 KiB takes {median_s * 1000:.2f} ms, the longest {longest_s * 1000:.1f} ms"
    if median_s < _SLOW_SYNC_S:
        return DoctorLine(about, "fsync", "ok", text)
    cure = 'A faster disk, or archive.sync = "interval"; with source.ack = "synced" each commit at the source waits so long.'
    return DoctorLine(about, "fsync", "warning", f"{text}: slow", cure)


def _sync_times(place: Path) -> list[float]:
    path = place / f"doctor-{os.getpid()}{TEMPORARY_SUFFIX}"
    fd = make_new_file(path)
    try:
        took: list[float] = []
        begun = time.monotonic()
        while len(took) < _SYNCS and (not took or time.monotonic() - begun < _SYNC_TIME_S):
            os.write(fd, bytes(4096))
            before = time.perf_counter()
            os.fdatasync(fd)
            took.append(time.perf_counter() - before)
        return took
    finally:
        os.close(fd)
        remove_file(path)


def space_line(
    about: str, free: int, rate_bytes_s: float | None, to_come: int | None, *, is_bounded: bool = False
) -> DoctorLine:
    """Return a line that compares the room with what the source writes, and with what an empty archive will fetch first. is_bounded:
    [retention] makes room."""
    cure = "Give the archive a larger disk, or remove what no replica needs any more (PURGE BINARY LOGS at the relay)."
    text = f"{shown_bytes(free)} free"
    if free < _LEAST_FREE:
        text += f", less than {shown_bytes(_LEAST_FREE)}: the disk is full, or will be with the next large transaction"
        return DoctorLine(about, "space", "problem", text, cure)
    if to_come is not None and to_come > free:
        text += f", and the source holds {shown_bytes(to_come)} of binlogs that are to come"
        return DoctorLine(about, "space", "problem", text, f'{cure} Or write source.start = "latest".')
    if rate_bytes_s is None or rate_bytes_s <= 0:
        return DoctorLine(about, "space", "unknown", f"{text}; how much the source writes is not known yet")
    days = free / rate_bytes_s / _DAY_S
    shown = f"{days:.1f} days" if days < 1000 else "years"
    if is_bounded:
        text += f"; the source writes {shown_bytes(rate_bytes_s * _DAY_S)} a day, and [retention] removes the oldest"
        return DoctorLine(about, "space", "ok", text)
    text += f"; the source writes {shown_bytes(rate_bytes_s * _DAY_S)} a day: full in {shown}"
    if days < _DAYS_PROBLEM:
        return DoctorLine(about, "space", "problem", text, cure)
    return DoctorLine(
        about, "space", "warning" if days < _DAYS_WARNING else "ok", text, cure if days < _DAYS_WARNING else ""
    )


def _file_system(place: Path) -> str | None:
    """Return its type, by the longest mount point that the path is under."""
    try:
        mounts = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    path = f"{place.resolve()}/"
    best = ("", None)
    for words in (line.split(" ") for line in mounts):
        point = words[1].replace("\\040", " ").rstrip("/") + "/"
        if path.startswith(point) and len(point) >= len(best[0]):
            best = point, words[2]  # type: ignore[assignment]
    return best[1]


def _descriptor_line(config: Config, pid: int | None) -> DoctorLine:
    wanted = wanted_descriptors(config.listen.descriptors, len(config.views))
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    whose = "of this shell; a service has its own, LimitNOFILE="
    if pid is not None:
        try:
            limits = Path(f"/proc/{pid}/limits").read_text(encoding="ascii")
            match = re.search(r"^Max open files +\S+ +(\S+)", limits, re.MULTILINE)
            if match is not None:
                allowed = resource.RLIM_INFINITY if match[1] == "unlimited" else int(match[1])
                whose = "of the relay"
        except OSError:
            pass
    text = f"{'unlimited' if allowed == resource.RLIM_INFINITY else allowed} ({whose}); {wanted} are wanted"
    if allowed == resource.RLIM_INFINITY or allowed >= wanted:
        return DoctorLine(_ABOUT, "descriptors", "ok", text)
    cure = "Raise the limit of open files (LimitNOFILE= of the unit, ulimit -n), or lower listen.max_connections."
    return DoctorLine(_ABOUT, "descriptors", "warning", f"{text}: fewer connections are taken", cure)


def archive_rate(files: Mapping[str, tuple[int, int, int]], now: float) -> float | None:
    """Return the bytes a second over the last week at most. files: (bytes, first time, last time) by name, Unix seconds, oldest
    first."""
    held = [one for one in files.values() if one[1] and one[2] > now - 7 * _DAY_S]
    if not held:
        return None
    span = max(one[2] for one in held) - min(one[1] for one in held)
    return sum(one[0] for one in held) / span if span >= 3600 else None
