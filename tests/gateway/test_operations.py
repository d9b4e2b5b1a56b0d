"""The table of operations: everything that is derived from an entry is there, and once."""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Protocol

import pytest

from holdfast.client.remote import RemoteApi
from holdfast.engine.identity.values import OwnerType
from holdfast.gateway.access.needs import Everyone
from holdfast.gateway.api import SPACES, Api, namespace
from holdfast.gateway.http.endpoints import ENDPOINTS
from holdfast.gateway.identity.shapes import MEMBERS
from holdfast.gateway.operation import Namespace, Operation, operation, operations_of

ENTRIES = [entry for space in SPACES for _, entry in operations_of(namespace(space))]


def test_the_api_has_the_namespaces_that_it_names() -> None:
    assert set(SPACES) == Api.__annotations__.keys() - {"access", "patience_s"}
    for space in SPACES:
        assert Api.__annotations__[space] == namespace(space).__name__
        made = getattr(RemoteApi("http://127.0.0.1:1"), space)
        assert namespace(space) in type(made).__mro__
    with pytest.raises(AttributeError, match="no attribute 'weather'"):
        RemoteApi("http://127.0.0.1:1").weather  # noqa: B018


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda each: each.name)
def test_an_operation_is_served_once_where_and_for_whom_its_entry_says(entry: Operation) -> None:
    if entry.need is None:
        expected = list(paths_of(entry))
        assert expected
        for path in expected:
            [found] = [
                each for each in ENDPOINTS if (each.method, each.path) == (entry.method, path)
            ]
            assert found.need
        return
    [found] = [each for each in ENDPOINTS if each.name == entry.name]
    assert (found.method, found.path, found.need) == (entry.method, entry.path, entry.need)
    assert found.summary == (entry.declared.__doc__ or "").partition("\n")[0].rstrip(".")


def paths_of(entry: Operation) -> Iterator[str]:
    """The paths of endpoints about groups and roles, whose parameters have the names of these."""
    for type_, members in MEMBERS.items():
        word = type_.lower()
        for member in members if "{member" in entry.path else (OwnerType.USER,):
            named = {OwnerType.USER: "username"}.get(member, f"{member.lower()}_id")
            yield (
                entry.path.replace("{type_}", word)
                .replace("{id_}", f"{{{word}_id}}")
                .replace("{member.member_type}", member.lower())
                .replace("{member.member_id}", f"{{{named}}}")
            )


def test_names_and_places_are_an_operations_own() -> None:
    for counts in (
        Counter(each.name for each in ENDPOINTS),
        Counter((each.method, re.sub(r"{\w+}", "{}", each.path)) for each in ENDPOINTS),
    ):
        assert counts.most_common(1)[0][1] == 1, counts.most_common(3)


class Weather(Namespace, Protocol):
    """A namespace of two operations."""

    @operation("get_rain", "GET", "/v2/rain", Everyone.KNOWN)
    async def rain(self) -> bytes:
        """Tell whether it rains."""
        ...

    @operation("get_wind", "GET", "/v2/wind", Everyone.KNOWN)
    async def wind(self) -> bytes:
        """Tell how the wind blows."""
        ...


def test_a_service_that_leaves_out_an_operation_is_refused() -> None:
    with pytest.raises(TypeError, match="Half does not do wind"):

        class Half(Weather):
            async def rain(self) -> bytes:
                return b"no"


ENGINE = ("holdfast.engine.kernel", "holdfast.engine.state", "holdfast.model.feel")
SERVER = ("holdfast.gateway.service", "holdfast.gateway.http", "litestar", "uvicorn", "rocksdict")


def test_a_client_of_a_node_loads_neither_the_engine_nor_the_server() -> None:
    script = """if True:
        import sys, holdfast
        app = holdfast.Holdfast.connect("http://127.0.0.1:1")
        app.api.batches, app.api.tasks, app.api.identity
        app.close()
        print(*sys.modules)
    """
    found = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    ).stdout.split()
    assert "holdfast.gateway.batch.api" in found
    assert [each for each in found if each.startswith((*ENGINE, *SERVER))] == []
