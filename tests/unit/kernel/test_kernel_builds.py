"""The kernel that is imported is the one that was built last."""

import os
import runpy

import pytest

from tests.support.kernel_builds import (
    MODULES,
    PACKAGES,
    ROOT,
    imported_kernel,
    is_extension,
    modules_to_compile,
    source_of,
    sources_of,
    uncompiled_kernel,
)

COMPILED_FILES = sorted(
    path
    for package in PACKAGES
    for pattern in ("*.so", "*.pyd")
    for path in ROOT.joinpath(*package.split(".")).rglob(pattern)
)


def test_the_kernel_is_compiled_where_compiling_was_required() -> None:
    if os.environ.get("BINLOG_RELAY_KERNEL") != "require" and not COMPILED_FILES:
        pytest.skip("no compiled kernel was asked for, and none is here")
    not_compiled = [name for name in MODULES if not is_extension(getattr(imported_kernel(), name))]
    assert not_compiled == []


@pytest.mark.parametrize("module", modules_to_compile())
def test_no_compiled_module_is_older_than_its_sources(module: str) -> None:
    folder = source_of(module).parent
    compiled = [
        path for path in COMPILED_FILES if path.parent == folder and path.name.split(".")[0] == module.split(".")[-1]
    ]
    if not compiled:
        pytest.skip(f"{module} is not compiled here")
    newest = max(source.stat().st_mtime for source in sources_of(module))
    assert compiled[0].stat().st_mtime >= newest, "stale: python setup.py build_ext --inplace"


def test_each_module_that_has_types_of_c_is_compiled() -> None:
    assert (
        sorted(f"protocol.{name}" for name in runpy.run_path(str(ROOT / "setup.py"))["MODULES"]) == modules_to_compile()
    )


def test_what_a_module_includes_far_away_is_among_its_sources() -> None:
    names = {path.name for path in sources_of(MODULES["frame"])}
    assert names >= {"frame.py", "frame.pxd", "edges.pxd", "inference.pxd", "codes.pxd", "native.pxd", "native.h"}


@pytest.mark.parametrize("name", MODULES)
def test_the_uncompiled_twin_is_uncompiled(name: str) -> None:
    assert str(getattr(uncompiled_kernel(), name).__file__).endswith(f"{name}.py")


def test_the_uncompiled_ingest_uses_the_uncompiled_inference() -> None:
    twin = uncompiled_kernel()
    assert twin.ingest.Inference is twin.inference.Inference
