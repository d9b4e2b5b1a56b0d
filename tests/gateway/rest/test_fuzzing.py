"""Requests that schemathesis makes up from the OpenAPI: none of them finds a bug of the node.

A node answers what is wrong with 4xx. The only 5xx are those that the document names: 503 with
Retry-After, and 504 where a request waits for the end of an instance. What does not fit a schema
is refused; an answer fits its own.
"""

import os
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import schemathesis
from fuzz_node import FuzzNode
from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)
from schemathesis.core import NOT_SET

from holdfast.gateway.http.endpoints import ENDPOINTS
from holdfast.gateway.http.openapi import openapi_document

SEED, EXAMPLES = 6, 3
SOAK_SEEDS, SOAK_EXAMPLES = 5, 60
WAIT_MS = 20  # what a request asks for at most: nothing is proven by waiting
SENSIBLE_SHARE, SMALL = 0.8, 100  # of the values in requests, so many are made sensible
OPERATIONS = [f"{each.method} {each.path}" for each in ENDPOINTS]
CHECKS: list[Callable[..., Any]] = [
    content_type_conformance, negative_data_rejection, response_schema_conformance,
    status_code_conformance,
]  # fmt: skip

DOCUMENT = openapi_document(ENDPOINTS)
SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FuzzNode]:
    node = FuzzNode(tmp_path_factory.mktemp("fuzz"))
    yield node
    node.close()


def fuzz(node: FuzzNode, operation: str, number: int, examples: int) -> None:
    """Asks one endpoint for things that fit its schema, and for some that do not."""
    method, path = operation.split(" ")
    known = node.seed()

    def sensible(case: Case, chance: random.Random) -> None:
        make_sensible(case, known, chance)
        cap_waits(case)
        check(node, case)

    def senseless(case: Case, _: random.Random) -> None:
        cap_waits(case)
        check(node, case)

    asked = SCHEMA[path][method]
    try:
        _run(sensible, asked.as_strategy(GenerationMode.POSITIVE), number, examples)
        if can_be_wrong(operation):
            _run(senseless, asked.as_strategy(GenerationMode.NEGATIVE), number, examples)
    except BaseException as error:
        raise AssertionError(
            f"{error}\nto replay it:\n  HOLDFAST_SEED={number} HOLDFAST_EXAMPLES={examples} pytest"
            f" 'tests/gateway/rest/test_fuzzing.py::test_one_seed_finds_no_bug[{operation}]'"
        ) from error


def can_be_wrong(operation: str) -> bool:
    """Whether a request has JSON or a parameter that not every text fits."""
    method, path = operation.split(" ")
    described = DOCUMENT["paths"][path][method.lower()]
    parameters = [each["schema"] for each in described.get("parameters", ())]
    has_json = "application/json" in described.get("requestBody", {"content": ()})["content"]
    return has_json or any(schema != {"type": "string"} for schema in parameters)


def _run(
    ask: Callable[[Case, random.Random], None], strategy: Any, number: int, examples: int
) -> None:
    @seed(number)
    @settings(
        max_examples=examples, deadline=None, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck), verbosity=Verbosity.quiet,
    )  # fmt: skip
    @given(strategy, st.integers(0, 2**32))
    def run(case: Case, choice: int) -> None:
        ask(case, random.Random(choice))

    run()


def check(node: FuzzNode, case: Case) -> None:
    response = case.call(base_url=node.url, timeout=20)
    if response.status_code >= 500:
        said = f"{case.as_curl_command()}\n{response.status_code} {response.text}"
        names_it = str(response.status_code) in case.operation.definition.raw["responses"]
        assert names_it, said
        assert response.status_code == 504 or "retry-after" in response.headers, said
    case.validate_response(response, checks=CHECKS)


def make_sensible(case: Case, known: dict[str, list[str]], chance: random.Random) -> None:
    """Puts names of what is there in place of those that were made up, and small numbers.

    Without that most requests would end at the first check.
    """

    def better(name: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: better(key, each) for key, each in value.items()}
        if isinstance(value, list):
            return [better(name, each) for each in value]
        if chance.random() > SENSIBLE_SHARE:
            return value
        if name == "variables":
            return {"orderId": "1"}
        if isinstance(value, int) and not isinstance(value, bool):
            return value % SMALL
        choices = known.get(re.sub(r"(?<=[a-z])([A-Z])", r"_\1", name).lower().removesuffix("s"))
        return chance.choice(choices) if choices and isinstance(value, str) else value

    case.path_parameters = better("", dict(case.path_parameters or {}))
    if case.body is not NOT_SET:
        case.body = better("", case.body)


def cap_waits(case: Case) -> None:
    if isinstance(case.body, dict):
        waits = case.path in ("/v2/jobs/activation", "/v2/process-instances")
        for field in ("waitMs", "requestTimeout"):
            value = case.body.get(field, 0 if waits and field == "requestTimeout" else None)
            if isinstance(value, int) and not isinstance(value, bool):
                long = value > WAIT_MS or (field == "requestTimeout" and value == 0)
                case.body[field] = WAIT_MS if long else value


@pytest.mark.parametrize("operation", OPERATIONS)
def test_no_request_finds_a_bug(node: FuzzNode, operation: str) -> None:
    fuzz(node, operation, SEED, EXAMPLES)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_no_request_of_very_many_finds_a_bug(node: FuzzNode, operation: str) -> None:
    for number in range(SOAK_SEEDS):
        fuzz(node, operation, number, SOAK_EXAMPLES)


# without a seed to replay there is nothing to run: one skipped test
@pytest.mark.parametrize("operation", OPERATIONS if "HOLDFAST_SEED" in os.environ else [])
def test_one_seed_finds_no_bug(node: FuzzNode, operation: str) -> None:
    examples = int(os.environ.get("HOLDFAST_EXAMPLES", str(EXAMPLES)))
    fuzz(node, operation, int(os.environ["HOLDFAST_SEED"]), examples)
