"""Each test of the kernel and the columns runs with the compiled modules and with the uncompiled text."""

import pytest

from tests.support.kernel_builds import BUILD_NAMES, KernelBuild, build_named


@pytest.fixture(params=BUILD_NAMES)
def build(request: pytest.FixtureRequest) -> KernelBuild:
    """One build of the kernel."""
    return build_named(request.param)
