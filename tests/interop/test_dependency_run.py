"""A view that says which transactions may run together, under random ones: a short version of `tests.support.dependency_run`."""

from pathlib import Path

import pytest

from tests.conftest import ServerFactory
from tests.support.dependency_run import IMAGES, DependencyRun

pytestmark = [pytest.mark.interop, pytest.mark.slow]

TRANSACTIONS = 4000


@pytest.mark.parametrize("image", IMAGES)
def test_replicas_with_many_workers_have_the_sources_tables_and_no_two_transactions_collide(
    servers: ServerFactory, tmp_path: Path, image: str
) -> None:
    seed = 100 + IMAGES.index(image)
    print(DependencyRun(seed, TRANSACTIONS, image=image, first_version=image == "MINIMAL").run(servers, tmp_path))


def test_so_it_is_with_generated_columns_of_a_new_source_that_forgets_its_own_dependencies(
    servers: ServerFactory, tmp_path: Path
) -> None:
    print(DependencyRun(104, TRANSACTIONS, source="mysql97").run(servers, tmp_path))
