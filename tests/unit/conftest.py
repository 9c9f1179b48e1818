"""Each test of the kernel and the columns runs with the compiled modules and with the uncompiled text."""

import pytest

from tests.support.kernel_builds import KernelBuild, imported_kernel, is_extension, uncompiled_kernel


@pytest.fixture(params=["compiled", "uncompiled"])
def build(request: pytest.FixtureRequest) -> KernelBuild:
    """One build of the kernel."""
    if request.param == "uncompiled":
        return uncompiled_kernel()
    if not is_extension(imported_kernel().ingest):
        pytest.skip("the kernel is not compiled here")
    return imported_kernel()
