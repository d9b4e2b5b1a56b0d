"""Odd credentials and odd time zones: the answer says what is wrong with them."""

import asyncio
import base64
import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.gateway.access.access_node import guarded
from tests.gateway.fake_api import ask

from holdfast.engine.timers.cron import next_cron_ms, next_due_ms, validate
from holdfast.engine.timers.values import Schedule
from holdfast.errors import InvalidArgument

KEY = ec.generate_private_key(ec.SECP256R1())
HOUR_S = 3_600


@pytest.fixture
def keys(tmp_path: Path) -> str:
    path = tmp_path / "keys.pem"
    path.write_bytes(
        KEY.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    return str(path)


def signed(claims: dict[str, Any], head: Any = None) -> bytes:
    """A token that is signed by the right key, whatever it says."""
    parts = [
        base64.urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=")
        for each in ({"alg": "ES256", "typ": "JWT"} if head is None else head, claims)
    ]
    content = b".".join(parts)
    signature = jwt.get_algorithm_by_name("ES256").sign(content, KEY)
    return content + b"." + base64.urlsafe_b64encode(signature).rstrip(b"=")


def statuses(keys: str, headers: list[bytes]) -> list[int]:
    """What a node answers to requests with these Authorization headers, byte by byte as given."""

    async def run() -> list[int]:
        async with guarded(basic_authentication=True, jwt_keys=keys) as there:
            port = int(there.url.rpartition(":")[2])
            found: list[int] = []
            for each in headers:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(
                    b"GET /v2/authentication/me HTTP/1.1\r\nHost: localhost\r\n"
                    b"Connection: close\r\nAuthorization: " + each + b"\r\n\r\n"
                )
                answer = await asyncio.wait_for(reader.read(), 20)
                found.append(int(answer.split(b" ", 2)[1]))
                writer.close()
            return found

    return asyncio.run(run())


def encoded(text: bytes) -> bytes:
    return b"Basic " + base64.b64encode(text)


HEAD = base64.urlsafe_b64encode(b'{"alg":"ES256"}').rstrip(b"=")
ODD = [
    b"", b"Basic", b"Basic ", b"Basic \xe9", "Basic é".encode(), b"Basic !!!", b"Basic YQ",
    b"Basic =", b"Basic YTpi YTpi", encoded(b"\xff\xfe"), encoded(b"no colon"), encoded(b":"),
    encoded(b"a:"), encoded(b":b"), encoded(b"\x00:\x00"), encoded("ü:ü".encode()),
    encoded(b"a" * 40_000 + b":b"), encoded(b"a:" + b"b" * 40_000), encoded(b"\xed\xa0\x80:b"),
    b"basic YTpi", b"BASIC YTpi", b"Bearer", b"Bearer \xe9", b"Bearer hf_", b"Bearer hf__",
    b"Bearer hf_\xe9_\xe9", b"Bearer .", b"Bearer ..", b"Bearer ...", b"Bearer a.b.c",
    b"Bearer " + b"a" * 50_000,
    b"Bearer hf_" + b"a" * 50_000 + b"_b", b"Bearer " + HEAD + b"..", b"Bearer " + HEAD + b".e30.",
    b"Bearer " + HEAD + b".\xe9.\xe9", b"Negotiate x", b"\xe9", b"Digest username=a", b"\t",
]  # fmt: skip
HEADS: list[Any] = [
    {}, {"alg": None}, {"alg": 1}, {"alg": "none"}, {"alg": "HS256"}, {"alg": "RS256"}, {"alg": {}},
    {"alg": ["ES256"]}, {"alg": "ES256", "crit": ["x"]}, {"alg": "ES256", "kid": 1}, [], "a", 1,
]  # fmt: skip


def test_no_odd_header_is_let_in_or_a_bug(keys: str) -> None:
    sent = ODD + [b"Bearer " + signed({"sub": "a", "exp": 4_000_000_000}, head) for head in HEADS]
    sent.append(b"Bearer " + base64.urlsafe_b64encode(b"[" * 20_000) + b".e30.AA")
    generator = random.Random(12)
    for _ in range(150):
        text = bytes(generator.choice(range(33, 256)) for _ in range(generator.randrange(60)))
        scheme = generator.choice([b"Basic ", b"Bearer ", b"Bearer hf_", b""])
        sent.append(scheme + text.replace(b"\x7f", b""))
    for header, status in zip(sent, statuses(keys, sent), strict=True):
        assert status in (401, 429), (header[:200], status)


CLAIMS: list[dict[str, Any]] = [
    {"sub": "\ud800"}, {"sub": ""}, {"sub": None}, {"sub": 1}, {"sub": ["a"]}, {"sub": {}}, {},
    {"sub": "a" * 2_000}, {"sub": "a\x00b"}, {"sub": " "}, {"sub": "a", "groups": ["\udfff"]},
    {"sub": "a", "groups": [""]}, {"sub": "a", "groups": "a"}, {"sub": "a", "groups": [1]},
    {"sub": "a", "groups": {"a": 1}}, {"sub": "a", "exp": None}, {"sub": "a", "exp": "never"},
    {"sub": "a", "exp": float("inf")},
    {"sub": "a", "exp": float("nan")}, {"sub": "a", "exp": -(10**30)}, {"sub": "a", "exp": []},
    {"sub": "a", "nbf": 10**400}, {"sub": "a", "nbf": float("inf")}, {"sub": "a", "nbf": "x"},
    {"sub": "a", "iat": float("nan")}, {"sub": "a", "iat": []},
]  # fmt: skip


def test_a_token_with_odd_claims_is_not_trusted(keys: str) -> None:
    exp = {"exp": int(time.time()) + HOUR_S}
    sent = [b"Bearer " + signed(exp | claims) for claims in CLAIMS]
    for claims, status in zip(CLAIMS, statuses(keys, sent), strict=True):
        assert status == 401, claims


def test_a_token_with_plain_claims_is_trusted(keys: str) -> None:
    claims = {"exp": int(time.time()) + HOUR_S, "sub": "ann", "groups": ["office", "Müller"]}
    assert statuses(keys, [b"Bearer " + signed(claims)]) == [200]


# --- time zones and cron rules ----------------------------------------------------------------

ZONES = [
    "America", "a" * 5_000, "..", ".", "../../etc/passwd", "/etc/passwd", "/", "posix", "posix/",
    "posix/..", "UTC/", "America/", "America/../UTC", "a/" * 2_000, "\x00", "UTC\x00", "é", "", " ",
    " UTC", "UTC ", "utc\n", "tzdata.zi", "zone.tab", "leapseconds", "iso3166.tab", "__init__.py",
    "America/__init__.py", "America/__pycache__", "C:\\x", "\\", "~", "$TZ", "-", "Europe//Berlin",
]  # fmt: skip


@pytest.mark.parametrize("zone", ZONES, ids=lambda zone: repr(zone[:20]))
def test_an_odd_time_zone_is_refused(zone: str) -> None:
    with pytest.raises(InvalidArgument, match="time zone") as refused:
        validate(schedule("0 0 * * *", zone))
    assert len(refused.value.message) < 500


def test_an_odd_time_zone_is_a_bad_request() -> None:
    async def run() -> None:
        async with guarded() as there:
            for zone in ("America", "a" * 5_000, "../../etc/passwd"):
                body = {"task": {"type": "mail"}, "cron": "0 0 * * *", "timezone": zone}
                reply = await ask(
                    there.url, "PUT", "/v2/schedules/nightly", json=body,
                    headers={"Authorization": f"Bearer {there.admin_token}"},
                )  # fmt: skip
                assert reply.status == 400 and "time zone" in reply.json()["detail"], zone

    asyncio.run(run())


FIELDS = [
    "*", "*/0", "*/5", "0", "59", "60", "1-5", "5-1", "1,2,3", "L", "l", "W", "#", "5#3", "?", "H",
    "R", "H(0-5)", "R(0-5)", "R(5-0)", "mon", "jan", "@daily", "@reboot", "-1", "9" * 20, "1/0",
    "\x00", "1-", "-", "/", ",", "1,,2", "*-*", "0-59/0", "sun#6", "L5", "15W", "2020", "*/-1", "é",
    "\n", "", "a" * 5_000, ",".join(["*"] * 500), "fri#L", "*#1", "0.5", "nan", "R(", "H()",
]  # fmt: skip


def schedule(cron: str, zone: str = "UTC") -> Schedule:
    job: Any = None
    return Schedule("nightly", job, cron, 0, zone)


def due_by_schedule(rule: str) -> None:
    validate(schedule(rule))
    next_due_ms(schedule(rule), 1_700_000_000_000)


def due_by_process(rule: str) -> None:
    next_cron_ms(rule, 1_700_000_000_000)


@pytest.mark.parametrize("due", [due_by_schedule, due_by_process])
def test_an_odd_rule_is_refused_or_followed(due: Callable[[str], None]) -> None:
    generator = random.Random(12)
    rules = FIELDS + [f"{each} * * * *" for each in FIELDS] + [f"0 0 * * {each}" for each in FIELDS]
    rules += [" ".join(generator.choices(FIELDS, k=k)) for k in (4, 5, 5, 5, 6, 7) * 40]
    refused = 0
    for rule in rules:
        try:
            due(rule)
        except InvalidArgument as error:
            refused += 1
            assert len(error.message) < 500
    assert 0 < refused < len(rules)
