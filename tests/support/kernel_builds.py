"""The kernel twice: as it is imported (compiled, if it was built), and from its text, uncompiled, beside it."""

import contextlib
import functools
import importlib
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGES: Final = ("protocol.kernel", "protocol.columns", "protocol.views", "protocol.dependencies")
"""All compiled modules are in these and in the packages below them."""
MODULES: Final = {
    "crc": "protocol.kernel.crc",
    "inference": "protocol.kernel.inference",
    "stream_format": "protocol.kernel.stream_format",
    "event_table": "protocol.kernel.event_table",
    "stream_notes": "protocol.kernel.stream_notes",
    "ingest": "protocol.kernel.ingest",
    "frame": "protocol.kernel.frame",
    "event_check": "protocol.kernel.event_check",
    "view_copy": "protocol.views.view_copy",
    "known_statements": "protocol.views.known_statements",
    "mariadb_copy": "protocol.views.mariadb_copy",
    "gtid_head": "protocol.kernel.gtid_head",
    "gtid_filter": "protocol.kernel.gtid_filter",
    "gtid_scan": "protocol.kernel.gtid_scan",
    "intervals": "protocol.kernel.intervals",
    "tables": "protocol.columns.tables",
    "column_reader": "protocol.columns.column_reader",
    "event_columns": "protocol.columns.event_columns",
    "transaction_columns": "protocol.columns.transaction_columns",
    "digest": "protocol.columns.digest",
    "statement_columns": "protocol.columns.statement_columns",
    "row_columns": "protocol.columns.rows.row_columns",
    "write_sets": "protocol.dependencies.write_sets",
    "group_waits": "protocol.dependencies.group_waits",
}
"""This maps the name in a `KernelBuild` to the module."""
_CIMPORT: Final = re.compile(r"^from (protocol\.\S+) cimport", re.MULTILINE)
_INCLUDE: Final = re.compile(r'^cdef extern from "(\w+\.h)"', re.MULTILINE)


@dataclass(frozen=True)
class KernelBuild:
    """The modules of one build. They are typed loosely: the uncompiled classes are other classes than the stubs describe."""

    name: str
    crc: Any
    inference: Any
    stream_format: Any
    event_table: Any
    stream_notes: Any
    ingest: Any
    frame: Any
    event_check: Any
    view_copy: Any
    known_statements: Any
    mariadb_copy: Any
    gtid_head: Any
    gtid_filter: Any
    gtid_scan: Any
    intervals: Any
    tables: Any
    column_reader: Any
    event_columns: Any
    transaction_columns: Any
    digest: Any
    statement_columns: Any
    row_columns: Any
    write_sets: Any
    group_waits: Any


def is_extension(module: ModuleType) -> bool:
    """Return whether the module was loaded from a compiled file."""
    return str(module.__file__).endswith(tuple(EXTENSION_SUFFIXES))


@functools.cache
def imported_kernel() -> KernelBuild:
    """Return the modules that an import gives."""
    return KernelBuild("compiled", **{name: importlib.import_module(module) for name, module in MODULES.items()})


def source_of(module: str) -> Path:
    """Return the text of one of `MODULES`."""
    return ROOT.joinpath(*module.split(".")).with_suffix(".py")


def modules_to_compile() -> list[str]:
    """Return every module with a .pxd beside its text, except those whose .pxd has only numbers."""
    found = []
    for package in PACKAGES:
        for path in ROOT.joinpath(*package.split(".")).rglob("*.pxd"):
            if path.with_suffix(".py").exists() and not path.stem.endswith("codes"):
                found.append(".".join(path.relative_to(ROOT).with_suffix("").parts))
    return sorted(found)


def sources_of(module: str) -> set[Path]:
    """Return all files from which the module is compiled: its text and .pxd, and what these include, directly and indirectly."""
    found: set[Path] = set()
    wanted = [source_of(module), source_of(module).with_suffix(".pxd")]
    while wanted:
        path = wanted.pop()
        if path in found or not path.exists():
            continue
        found.add(path)
        text = path.read_text()
        wanted += [source_of(name).with_suffix(".pxd") for name in _CIMPORT.findall(text)]
        wanted += [path.with_name(name) for name in _INCLUDE.findall(text)]
    return found


def _in_packages(name: str) -> bool:
    return name.startswith(tuple(f"{package}." for package in PACKAGES))


class _SourceFinder(MetaPathFinder):
    """A finder of the modules of the kernel and the columns as text, and nothing else."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        source = source_of(fullname)
        if not _in_packages(fullname) or not source.exists():
            return None
        return spec_from_file_location(fullname, source, loader=SourceFileLoader(fullname, str(source)))


@functools.cache
def uncompiled_kernel() -> KernelBuild:
    """Return the same text run by the interpreter: separate modules that import each other and nothing compiled."""
    imported_kernel()
    # The packages themselves stay, with what hangs on them: of two of a name, an import would take the wrong one.
    real = {name: module for name, module in sys.modules.items() if _in_packages(name) and not _is_package(module)}
    finder = _SourceFinder()
    for name in real:
        del sys.modules[name]
    sys.meta_path.insert(0, finder)
    try:
        return KernelBuild("uncompiled", **{name: importlib.import_module(module) for name, module in MODULES.items()})
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name, module in sys.modules.items() if _in_packages(name) and not _is_package(module)]:
            del sys.modules[name]
        sys.modules.update(real)
        for name, module in real.items():
            package, _, short = name.rpartition(".")
            setattr(sys.modules[package], short, module)


def _is_package(module: ModuleType) -> bool:
    return hasattr(module, "__path__")


@contextlib.contextmanager
def gtid_sets_by(build: KernelBuild) -> Iterator[None]:
    """Make GTID sets use this build's intervals meanwhile."""
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
    """Return both, or the uncompiled one if nothing was compiled."""
    compiled = imported_kernel()
    return [compiled, uncompiled_kernel()] if is_extension(compiled.ingest) else [uncompiled_kernel()]


BUILD_NAMES: Final = ("compiled", "uncompiled")


def build_named(name: str) -> KernelBuild:
    """Return one of BUILD_NAMES; a test that needs a compiled kernel is skipped without one."""
    if name == "uncompiled":
        return uncompiled_kernel()
    if not is_extension(imported_kernel().ingest):
        pytest.skip("the kernel is not compiled here")
    return imported_kernel()
