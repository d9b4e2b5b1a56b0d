"""Searches of what the node itself knows: users, groups, roles and authorizations."""

from typing import Any

import pytest

from holdfast.errors import InvalidArgument
from holdfast.gateway.http import HttpServer  # noqa: F401 - the endpoints are imported by it first
from holdfast.gateway.rest.known import search_known
from holdfast.gateway.rest.users import USERS, UserQuery, UserResult

ADA, BOB = UserResult("ada", "Ada", None), UserResult("bob", "Bob", "bob@example.org")


def search(wanted: dict[str, Any], *users: UserResult) -> list[UserResult]:
    return search_known(USERS, users, UserQuery(filter=wanted))[0]


@pytest.mark.parametrize(
    "condition",
    [
        {"$eq": 0},
        {"$neq": 0.0},
        {"$in": "ada"},
        {"$in": ["ada", 1]},
        {"$notIn": [None]},
        {"$exists": "yes"},
        {"$like": 7},
        {"$gt": "ada"},
    ],
)
@pytest.mark.parametrize("users", [(), (ADA, BOB)], ids=["nobody", "two users"])
def test_a_condition_that_cannot_be_read_is_refused_with_and_without_users(
    condition: dict[str, Any], users: tuple[UserResult, ...]
) -> None:
    with pytest.raises(InvalidArgument, match="name"):
        search({"username": "nobody", "name": condition}, *users)
    with pytest.raises(InvalidArgument, match="name"):
        search({"$or": [{"username": "ada"}, {"name": condition}]}, *users)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({}, [ADA, BOB]),
        ({"username": "ada"}, [ADA]),
        ({"username": {"$neq": "ada"}}, [BOB]),
        ({"username": {"$in": ["bob", "eve"]}}, [BOB]),
        ({"email": {"$exists": False}}, [ADA]),
        ({"name": {"$like": "B*"}}, [BOB]),
        ({"$or": [{"name": "Ada"}, {"email": {"$exists": True}}]}, [ADA, BOB]),
    ],
)
def test_a_filter_finds_whom_it_names(wanted: dict[str, Any], found: list[UserResult]) -> None:
    assert search(wanted, BOB, ADA) == found
