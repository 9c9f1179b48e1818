"""The kernel twice: as it is imported (compiled, where it was built), and from its text, uncompiled, beside it."""

import contextlib
import functools
import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, Final

KERNEL: Final = Path(__file__).resolve().parents[2] / "protocol" / "kernel"
MODULES: Final = (
    "crc",
    "inference",
    "format_description",
    "event_table",
    "stream_notes",
    "ingest",
    "frame",
    "gtid_keys",
    "gtid_skip",
    "gtids",
    "intervals",
    "tables",
    "event_columns",
    "transaction_columns",
    "digest",
    "statement_columns",
    "row_columns",
)


@dataclass(frozen=True)
class KernelBuild:
    """One build's modules. Typed loosely: the uncompiled classes are other classes than the stubs describe."""

    name: str
    crc: Any
    inference: Any
    format_description: Any
    event_table: Any
    stream_notes: Any
    ingest: Any
    frame: Any
    gtid_keys: Any
    gtid_skip: Any
    gtids: Any
    intervals: Any
    tables: Any
    event_columns: Any
    transaction_columns: Any
    digest: Any
    statement_columns: Any
    row_columns: Any


def is_extension(module: ModuleType) -> bool:
    """Whether the module was loaded from a compiled file."""
    return str(module.__file__).endswith(tuple(EXTENSION_SUFFIXES))


@functools.cache
def imported_kernel() -> KernelBuild:
    """The modules that `import protocol.kernel...` gives."""
    return KernelBuild("compiled", *(importlib.import_module(f"protocol.kernel.{name}") for name in MODULES))


class _SourceFinder(MetaPathFinder):
    """Finds the kernel's modules as text, and nothing else."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        package, _, name = fullname.rpartition(".")
        source = KERNEL / f"{name}.py"
        if package != "protocol.kernel" or not source.exists():
            return None
        return spec_from_file_location(fullname, source, loader=SourceFileLoader(fullname, str(source)))


@functools.cache
def uncompiled_kernel() -> KernelBuild:
    """The same text run by the interpreter: modules of their own that import each other and nothing compiled."""
    imported_kernel()
    package = sys.modules["protocol.kernel"]
    prefix = "protocol.kernel."
    real = {name: module for name, module in sys.modules.items() if name.startswith(prefix)}
    finder = _SourceFinder()
    for name in real:
        del sys.modules[name]
    sys.meta_path.insert(0, finder)
    try:
        return KernelBuild("uncompiled", *(importlib.import_module(prefix + name) for name in MODULES))
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name.startswith(prefix)]:
            del sys.modules[name]
        sys.modules.update(real)
        for name, module in real.items():
            setattr(package, name.removeprefix(prefix), module)


@contextlib.contextmanager
def gtid_sets_by(build: KernelBuild) -> Iterator[None]:
    """Meanwhile GTID sets count with this build's intervals."""
    users = [importlib.import_module(f"protocol.gtid.{name}") for name in ("gtid_set", "codec")]
    real = [user.intervals for user in users]
    for user in users:
        user.intervals = build.intervals  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for user, intervals in zip(users, real, strict=True):
            user.intervals = intervals  # type: ignore[attr-defined]


def builds() -> list[KernelBuild]:
    """Both, or the uncompiled one where nothing was compiled."""
    compiled = imported_kernel()
    return [compiled, uncompiled_kernel()] if is_extension(compiled.ingest) else [uncompiled_kernel()]
