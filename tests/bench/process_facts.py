"""What the kernel knows of a process: processor time and memory."""

import time
from pathlib import Path


def cpu_s(pid: int) -> float:
    """Processor time of all its threads so far, ended ones included, in seconds; resolution is nanoseconds.

    The clock's number is made as Linux's clock_getcpuclockid(3) makes it: the inverted pid, shifted, 2 for
    "time really scheduled". /proc/PID/stat counts in hundredths of a second, too coarse here.
    """
    return time.clock_gettime(~pid << 3 | 2)


def peak_rss_mb(pid: int) -> float:
    """The most memory it had resident at any time, in MB (VmHWM)."""
    return _status_kb(pid, "VmHWM") * 1024 / 1e6


def rss_mb(pid: int) -> float:
    """Memory it has resident now, in MB."""
    return _status_kb(pid, "VmRSS") * 1024 / 1e6


def _status_kb(pid: int, field: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    raise LookupError(f"process {pid} has no {field}")
