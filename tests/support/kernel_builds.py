"""The kernel twice: as it is imported (compiled, where it was built), and from its text, uncompiled, beside it."""

import functools
import importlib
import sys
from dataclasses import dataclass
from importlib.machinery import EXTENSION_SUFFIXES, SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, Final

KERNEL: Final = Path(__file__).resolve().parents[2] / "protocol" / "kernel"
MODULES: Final = ("crc", "inference", "ingest", "frame")


@dataclass(frozen=True)
class KernelBuild:
    """One build's modules. Typed loosely: the uncompiled classes are other classes than the stubs describe."""

    name: str
    crc: Any
    inference: Any
    ingest: Any
    frame: Any


def is_extension(module: ModuleType) -> bool:
    """Whether the module was loaded from a compiled file."""
    return str(module.__file__).endswith(tuple(EXTENSION_SUFFIXES))


@functools.cache
def imported_kernel() -> KernelBuild:
    """The modules that `import protocol.kernel...` gives."""
    return KernelBuild("compiled", *(importlib.import_module(f"protocol.kernel.{name}") for name in MODULES))


@functools.cache
def uncompiled_kernel() -> KernelBuild:
    """The same text run by the interpreter: modules of their own that import each other and nothing compiled."""
    names = ["pure", *MODULES]
    real = {f"protocol.kernel.{name}": sys.modules.pop(f"protocol.kernel.{name}", None) for name in names}
    made = {}
    try:
        for name in names:
            alias, path = f"protocol.kernel.{name}", str(KERNEL / f"{name}.py")
            spec = spec_from_file_location(alias, path, loader=SourceFileLoader(alias, path))
            assert spec is not None and spec.loader is not None
            module = module_from_spec(spec)
            sys.modules[alias] = made[name] = module
            spec.loader.exec_module(module)
    finally:
        for alias, module_or_none in real.items():
            sys.modules.pop(alias, None)
            if module_or_none is not None:
                sys.modules[alias] = module_or_none
    return KernelBuild("uncompiled", *(made[name] for name in MODULES))


def builds() -> list[KernelBuild]:
    """Both, or the uncompiled one where nothing was compiled."""
    compiled = imported_kernel()
    return [compiled, uncompiled_kernel()] if is_extension(compiled.ingest) else [uncompiled_kernel()]
