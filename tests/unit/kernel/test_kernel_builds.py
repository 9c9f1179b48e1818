"""The kernel that is imported is the one that was built last."""

import os

import pytest

from tests.support.kernel_builds import (
    MODULES,
    PACKAGES,
    ROOT,
    imported_kernel,
    is_extension,
    source_of,
    uncompiled_kernel,
)

COMPILED_FILES = sorted(
    path
    for package in PACKAGES
    for pattern in ("*.so", "*.pyd")
    for path in ROOT.joinpath(*package.split(".")).rglob(pattern)
)
NATIVE = ROOT / "protocol" / "kernel"


def test_the_kernel_is_compiled_where_compiling_was_required() -> None:
    if os.environ.get("BINLOG_RELAY_KERNEL") != "require" and not COMPILED_FILES:
        pytest.skip("no compiled kernel was asked for, and none is here")
    not_compiled = [name for name in MODULES if not is_extension(getattr(imported_kernel(), name))]
    assert not_compiled == []


@pytest.mark.parametrize("name", MODULES)
def test_no_compiled_module_is_older_than_its_sources(name: str) -> None:
    compiled = [path for path in COMPILED_FILES if path.name.startswith(f"{name}.")]
    if not compiled:
        pytest.skip(f"{name} is not compiled here")
    source = source_of(MODULES[name])
    sources = [source, source.with_suffix(".pxd"), NATIVE / "native.pxd", NATIVE / "native.h"]
    newest = max(source.stat().st_mtime for source in sources)
    assert compiled[0].stat().st_mtime >= newest, "stale: python setup.py build_ext --inplace"


@pytest.mark.parametrize("name", MODULES)
def test_the_uncompiled_twin_is_uncompiled(name: str) -> None:
    assert str(getattr(uncompiled_kernel(), name).__file__).endswith(f"{name}.py")


def test_the_uncompiled_ingest_uses_the_uncompiled_inference() -> None:
    twin = uncompiled_kernel()
    assert twin.ingest.Inference is twin.inference.Inference
