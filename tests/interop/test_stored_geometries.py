"""Geometries that a statement stores are the same at an old server and a new one, as a view takes for granted."""

import pytest

from tests.conftest import ServerFactory

pytestmark = pytest.mark.interop

_STATEMENTS = (
    "CREATE DATABASE d",
    "CREATE TABLE d.t (id INT PRIMARY KEY, g GEOMETRY, p POINT, l LINESTRING NOT NULL)",
    "INSERT INTO d.t VALUES (1, POINT(1, 1), POINT(-0.5, 1e300), LINESTRING(POINT(0, 0), POINT(1, 1)))",
    "INSERT INTO d.t VALUES (2, NULL, NULL, LINESTRING(POINT(0, 0), POINT(0, 0)))",
    "INSERT INTO d.t VALUES (3, POLYGON(LINESTRING(POINT(0, 0), POINT(4, 0), POINT(4, 4), POINT(0, 0))), POINT(0, 0), "
    "LINESTRING(POINT(1, 2), POINT(3, 4), POINT(5, 6)))",
    "UPDATE d.t SET g = g, p = p, l = l",
    "UPDATE d.t SET g = l WHERE id = 2",
    "INSERT INTO d.t SELECT id + 10, p, p, l FROM d.t",
    "REPLACE INTO d.t SELECT id, l, p, l FROM d.t WHERE id = 11",
    "UPDATE d.t SET g = MULTIPOINT(POINT(1, 1), POINT(2, 2)) WHERE id = 1",
    "UPDATE d.t SET g = GEOMETRYCOLLECTION(POINT(1, 1), LINESTRING(POINT(0, 0), POINT(1, 1))) WHERE id = 13",
)


def test_a_geometry_that_is_stored_is_the_same_at_both(servers: ServerFactory) -> None:
    found = []
    for number, name in enumerate(("mysql56", "mysql97"), 1):
        server = servers(name).start(server_id=number)
        server.execute_many(list(_STATEMENTS))
        found.append(server.sql("SELECT id, HEX(g), HEX(p), HEX(l) FROM d.t ORDER BY id"))
    assert found[0] == found[1] and found[0]
