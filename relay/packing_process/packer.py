"""Creates packed copies for the relay, in the calling thread or in a process that is started for it.

In a thread of the relay's process packing needs the interpreter now and then, for less than a millisecond. But a thread of low
priority that has it does not run while others want the processors, and the event loop waits for it.
"""

import contextlib
import errno
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final, NoReturn

from relay.archive.storage.boundary_index import index_path
from relay.archive.storage.files import FileLayer
from relay.packed.key_ring import KeyRing
from relay.packing_process.packed_copy import CopyFiles, CopyOrder, CopyStopped, PackedCopy, write_copy
from relay.packing_process.packing_child import URGENT
from relay.packing_process.packing_messages import receive_copy, send_order

_ROOT: Final = Path(__file__).resolve().parents[2]
# After all other places: what is next to the package `relay` hides no module of another.
_BEGIN: Final = (
    f"import sys; sys.path.append({str(_ROOT)!r}); from relay.packing_process.packing_child import main; main()"
)
_LOOK_MS: Final = 100
_END_S: Final = 2.0
_FOR_THE_RELAY: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""A service manager and a terminal send these signals to all processes; the packing process ends with its relay."""


def _memory_file() -> BinaryIO:
    """Return a file without a name; on Linux it is in memory."""
    if hasattr(os, "memfd_create"):
        return open(os.memfd_create("packed"), "w+b", buffering=0)
    return tempfile.TemporaryFile(buffering=0)


class Packer(ABC):
    """Blocking, for one thread at a time. `close` it when nothing is packed for a while; it can be used again."""

    def __init__(self, layer: FileLayer) -> None:
        self.layer = layer
        """The layer that it works on."""

    @abstractmethod
    def begin(self, *, urgent: bool = False) -> None:
        """Start what is needed, if it is not running; `make` does the same. Raises: OSError."""

    def make(
        self,
        plain: Path,
        packed: Path,
        order: CopyOrder,
        keys: KeyRing | None,
        stop: Callable[[], bool],
        *,
        urgent: bool = False,
    ) -> PackedCopy:
        """Create the packed copy of the binlog `plain`, at `packed`. Raises: CopyFailed, CopyStopped, OSError; then a part may be
        there."""
        with contextlib.ExitStack() as opened:

            def keep(fd: int) -> int:
                opened.callback(self.layer.close, fd)
                return fd

            index = -1
            with contextlib.suppress(FileNotFoundError):
                index = keep(self.layer.open_read(index_path(plain)))
            files = CopyFiles(keep(self.layer.open_read(plain)), index, keep(self.layer.create(packed)))
            return self._copy(files, order, keys, stop, urgent)

    def make_in_memory(
        self,
        plain: Path,
        order: CopyOrder,
        keys: KeyRing | None,
        stop: Callable[[], bool],
        *,
        urgent: bool = False,
    ) -> bytes:
        """Return the packed copy of a small stretch, which is written to no disk. Raises: as `make`."""
        with contextlib.ExitStack() as opened:
            source = self.layer.open_read(plain)
            opened.callback(self.layer.close, source)
            packed = opened.enter_context(_memory_file())
            copy = self._copy(CopyFiles(source, -1, packed.fileno()), order, keys, stop, urgent)
            return os.pread(packed.fileno(), copy.stored_bytes, 0)

    @abstractmethod
    def _copy(
        self, files: CopyFiles, order: CopyOrder, keys: KeyRing | None, stop: Callable[[], bool], urgent: bool
    ) -> PackedCopy:
        """Copy from open files to open files. Raises: as `make`."""

    @abstractmethod
    def close(self) -> None:
        """End what it needed."""


class ThreadPacker(Packer):
    """Packs in the calling thread, on any layer, and does not yield to other work."""

    def begin(self, *, urgent: bool = False) -> None:
        """Do nothing: nothing is needed."""

    def close(self) -> None:
        """Do nothing: there is nothing to end."""

    def _copy(
        self, files: CopyFiles, order: CopyOrder, keys: KeyRing | None, stop: Callable[[], bool], urgent: bool
    ) -> PackedCopy:
        return write_copy(self.layer, files, order, keys, stop)


class ProcessPacker(Packer):
    """Packs in a process of its own, which yields to all other work as `relay.packing_process.throttle` describes."""

    def __init__(self) -> None:
        super().__init__(FileLayer())
        self._child: subprocess.Popen[bytes] | None = None
        self._link: socket.socket | None = None
        self._is_urgent = False

    @property
    def is_running(self) -> bool:
        """True if the process is running."""
        return self._child is not None and self._child.poll() is None

    def begin(self, *, urgent: bool = False) -> None:
        """Start the process. Not for a thread of low priority: until the other program runs, the whole interpreter waits for it."""
        if not self.is_running or self._is_urgent != urgent:
            self.close()
            self._start(urgent)

    def _copy(
        self, files: CopyFiles, order: CopyOrder, keys: KeyRing | None, stop: Callable[[], bool], urgent: bool
    ) -> PackedCopy:
        copy = None
        try:
            self.begin(urgent=urgent)
            assert self._link is not None
            send_order(self._link, order, keys, files)
            coming = select.poll()
            coming.register(self._link, select.POLLIN)
            while not coming.poll(_LOOK_MS):
                if stop():
                    raise CopyStopped
            copy = receive_copy(self._link)
        except ConnectionError:
            pass
        except BaseException:  # what it does is not wanted any more
            self.close()
            raise
        if copy is None:
            self._ended(stop)
        return copy

    def close(self) -> None:
        """End the process, within two seconds whatever it does."""
        link, child = self._link, self._child
        self._link = self._child = None
        if link is not None:
            link.close()
        if child is not None:
            try:
                child.wait(_END_S)
            except subprocess.TimeoutExpired:
                # It got no processor since, or waits for the disk: it is not needed any more.
                child.kill()
                child.wait()

    def _start(self, urgent: bool) -> None:
        link, other = socket.socketpair()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _FOR_THE_RELAY)
        try:
            with other:
                self._child = subprocess.Popen(
                    [sys.executable, "-c", _BEGIN, str(other.fileno()), URGENT if urgent else "can wait"],
                    pass_fds=[other.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
        except OSError:
            link.close()
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self._link, self._is_urgent = link, urgent

    def _ended(self, stop: Callable[[], bool]) -> NoReturn:
        """Raise the error for a process that ended without an answer."""
        child = self._child
        self.close()
        if stop():
            raise CopyStopped
        code = None if child is None else child.returncode
        raise OSError(errno.ECHILD, f"the process that packs ended with {_ending(code)}")


def _ending(code: int | None) -> str:
    return f"signal {-code}" if code is not None and code < 0 else f"code {code}"
