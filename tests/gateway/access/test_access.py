"""Who is let in: tokens of machines, tokens that an issuer signed, passwords, and nobody else."""

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from tests.gateway.access.access_node import Guarded, basic, bearer, guarded
from tests.gateway.fake_api import Reply, ask

from holdfast.engine.identity.values import PERMISSIONS, OwnerType, Permission, ResourceType
from holdfast.errors import Forbidden, InvalidArgument, Unauthorized
from holdfast.gateway.access.needs import Everyone
from holdfast.gateway.http.endpoints import ENDPOINTS
from holdfast.gateway.identity.shapes import NewToken, NewUser, UserChange
from holdfast.gateway.tasks.shapes import NewTask

ME, TOPOLOGY = "/v2/authentication/me", "/v2/topology"
OPEN = {"get_health", "get_status"}  # to everybody, such as load balancers
ISSUER, AUDIENCE = "https://id.example", "holdfast"


def inside(story: Callable[[Guarded], Awaitable[None]], **settings: Any) -> None:
    async def run() -> None:
        async with guarded(**settings) as there:
            await story(there)

    asyncio.run(run())


async def status(there: Guarded, headers: dict[str, str]) -> int:
    return (await ask(there.url, "GET", TOPOLOGY, headers=headers)).status


# --- the walk over all endpoints --------------------------------------------------------------


def test_every_endpoint_names_what_it_needs() -> None:
    for each in ENDPOINTS:
        if not isinstance(each.need, Everyone):
            assert each.need, f"{each.name} is for nobody"
            for resource, permission in each.need:
                assert permission in PERMISSIONS[resource], each.name
    assert {each.name for each in ENDPOINTS if each.need is Everyone.ANYBODY} == OPEN
    assert len({each.name for each in ENDPOINTS}) == len(ENDPOINTS), "a name is an endpoint's own"


def test_who_may_do_nothing_is_refused_everywhere_but_where_nobody_is_asked() -> None:
    async def walk(there: Guarded) -> None:
        nobody = (await there.admin.identity.create_token(NewToken("nobody"))).token
        for each in ENDPOINTS:
            path = re.sub(r"{\w+}", "2251799813685249", each.path)
            sent: dict[str, Any] = {"json": {}} if each.decoder is not None else {}
            unknown: Reply = await ask(there.url, each.method, path, **sent)
            known: Reply = await ask(there.url, each.method, path, headers=bearer(nobody), **sent)
            need = each.need
            if need is Everyone.ANYBODY:
                assert unknown.status < 400, each.name
            elif need is Everyone.KNOWN:
                assert (unknown.status, known.status) == (401, 200), each.name
            else:
                assert (unknown.status, known.status) == (401, 403), each.name
                assert known.json()["code"] == "FORBIDDEN"

    inside(walk)


def test_who_may_do_everything_is_refused_nowhere() -> None:
    async def walk(there: Guarded) -> None:
        for each in ENDPOINTS:
            path = re.sub(r"{\w+}", "2251799813685249", each.path)
            sent: dict[str, Any] = {"json": {}} if each.decoder is not None else {}
            headers = bearer(there.admin_token)
            reply: Reply = await ask(there.url, each.method, path, headers=headers, **sent)
            is_clock = each.path.startswith("/v2/clock")  # a setting keeps it shut
            assert reply.status not in (401, 403) or is_clock, (each.name, reply.status)

    inside(walk)


def test_the_description_of_the_api_is_for_those_who_are_known() -> None:
    async def story(there: Guarded) -> None:
        for path in ("/openapi", "/openapi/openapi.json"):
            assert (await ask(there.url, "GET", path)).status == 401
            known = await ask(there.url, "GET", path, headers=bearer(there.admin_token))
            assert known.status == 200 and "paths" in known.json()

    inside(story)


# --- tokens of machines -----------------------------------------------------------------------


def test_a_token_is_believed_until_it_is_deleted() -> None:
    async def story(there: Guarded) -> None:
        receipt = await there.admin.identity.create_token(NewToken("robot"))
        robot = there.client(receipt.token)
        me = await robot.identity.own_identity()
        assert (me.owner_type, me.owner_id, me.authorizations) == (OwnerType.CLIENT, "robot", [])
        (listed,) = [
            each
            for each in (await there.admin.identity.tokens()).items
            if each.client_id == "robot"
        ]
        assert listed.token_id == receipt.token_id and listed.expires is None
        for wrong in (receipt.token + "x", receipt.token[:-1], f"hf_{receipt.token_id}_", "hf_"):
            assert await status(there, bearer(wrong)) == 401
        await there.admin.identity.delete_token(receipt.token_id)
        with pytest.raises(Unauthorized, match="unknown or was deleted"):
            await robot.identity.own_identity()

    inside(story)


def test_a_token_is_not_believed_when_its_time_is_over() -> None:
    async def story(there: Guarded) -> None:
        token = (await there.admin.identity.create_token(NewToken("robot", lasts_ms=1))).token
        async with asyncio.timeout(20):
            while (reply := await ask(there.url, "GET", ME, headers=bearer(token))).status == 200:
                pass
        assert reply.status == 401 and "its time is over" in reply.json()["detail"]
        with pytest.raises(InvalidArgument, match="lastsMs"):
            await there.admin.identity.create_token(NewToken("robot", lasts_ms=-1))

    inside(story)


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Digest x", "Basic YTpi", "Bearer a.b.c"]
)
def test_a_request_without_valid_credentials_is_told_which_ones_to_send(header: str) -> None:
    async def story(there: Guarded) -> None:
        reply = await ask(there.url, "GET", ME, headers={"Authorization": header})
        assert reply.status == 401
        assert reply.headers["www-authenticate"].startswith("Bearer")
        assert reply.json()["code"] == "UNAUTHORIZED"

    inside(story)


def test_the_first_one_is_let_in_once() -> None:
    async def story(there: Guarded) -> None:
        kept: list[str] = []
        assert not await there.node.gateway.let_first_in(kept.append)
        assert not kept
        me = await there.admin.identity.own_identity()
        assert me.roles == ["admin"]

    inside(story)


# --- passwords --------------------------------------------------------------------------------


def test_a_password_is_enough_where_that_is_allowed() -> None:
    async def story(there: Guarded) -> None:
        identity = there.admin.identity
        await identity.create_user(NewUser("ada", "right: ü", "Ada"))
        await identity.create_user(NewUser("bob"))
        ada = basic("ada", "right: ü")
        assert [await status(there, ada) for _ in range(2)] == [200, 200]
        assert await status(there, basic("ada", "wrong")) == 401
        assert await status(there, basic("bob", "")) == 401
        assert await status(there, basic("eve", "right: ü")) == 401
        assert await status(there, {"Authorization": "Basic ???"}) == 401
        await identity.update_user("ada", UserChange("Ada L."))
        assert await status(there, ada) == 200
        await identity.update_user("ada", UserChange(password="other"))
        assert (await status(there, ada), await status(there, basic("ada", "other"))) == (401, 200)
        await identity.delete_user("ada")
        assert await status(there, basic("ada", "other")) == 401
        names = [(each.username, each.has_password) for each in (await identity.users()).items]
        assert names == [("bob", False)]

    inside(story, basic_authentication=True)


def test_a_name_and_a_password_may_stand_in_the_url() -> None:
    async def story(there: Guarded) -> None:
        await there.admin.identity.create_user(NewUser("a@b", "x/y"))
        there.url = there.url.replace("://", "://a%40b:x%2Fy@")
        client = there.client(None)
        assert (await client.identity.own_identity()).owner_id == "a@b"
        assert "@" not in client.url and "x/y" not in client.url

    inside(story, basic_authentication=True)


def test_passwords_are_not_taken_where_they_are_not_allowed() -> None:
    async def story(there: Guarded) -> None:
        await there.admin.identity.create_user(NewUser("ada", "right"))
        assert await status(there, basic("ada", "right")) == 401

    inside(story)


# --- signed tokens ----------------------------------------------------------------------------

RSA_KEY = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())


def pem(key: Any) -> bytes:
    return key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def key_set() -> str:
    keys = [
        json.loads(RSAAlgorithm.to_jwk(RSA_KEY.public_key())) | {"kid": "r"},
        json.loads(ECAlgorithm.to_jwk(EC_KEY.public_key())) | {"kid": "e"},
    ]
    return json.dumps({"keys": keys})


def signed(
    key: Any = RSA_KEY, algorithm: str = "RS256", kid: str | None = "r", **claims: Any
) -> str:
    said = {"sub": "ada", "exp": time.time() + 60, "iss": ISSUER, "aud": AUDIENCE} | claims
    told = {name: value for name, value in said.items() if value is not None}
    return jwt.encode(told, key, algorithm, headers={"kid": kid} if kid else None)


TRUSTED = {"jwt_issuer": ISSUER, "jwt_audience": AUDIENCE}


@pytest.mark.parametrize("content", [pem(RSA_KEY), key_set().encode()], ids=["PEM", "JWKS"])
def test_a_token_that_a_trusted_key_signed_names_its_bearer(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "keys").write_bytes(content)

    async def story(there: Guarded) -> None:
        await there.let("crew", ResourceType.TASK, "mail", Permission.CREATE, type_=OwnerType.GROUP)
        ada = there.client(signed(groups=["crew"]))
        me = await ada.identity.own_identity()
        assert (me.owner_type, me.owner_id, me.groups) == (OwnerType.USER, "ada", ["crew"])
        await ada.tasks.submit([NewTask("mail")])
        with pytest.raises(Forbidden, match="CREATE on TASK 'other'"):
            await ada.tasks.submit([NewTask("other")])
        other = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
        for wrong in (
            signed(other), signed(exp=time.time() - 60), signed(exp=None), signed(iss="x"),
            signed(aud="x"), signed(aud=None), signed(sub=None), signed(sub=7),
            signed(groups="crew"), signed(pem(RSA_KEY).hex(), "HS256"), signed(None, "none"),
            signed()[:-2],
        ):  # fmt: skip
            assert await status(there, bearer(wrong)) == 401

    inside(story, jwt_keys=str(tmp_path / "keys"), **TRUSTED)


def test_each_key_of_a_set_is_trusted_and_claims_have_the_names_that_are_set(
    tmp_path: Path,
) -> None:
    (tmp_path / "keys").write_text(key_set())
    names = {"jwt_user_claim": "email", "jwt_groups_claim": "teams"}

    async def story(there: Guarded) -> None:
        for key, algorithm, kid in ((EC_KEY, "ES256", "e"), (RSA_KEY, "RS512", None)):
            token = signed(key, algorithm, kid, email="ada@example", teams=["crew"])
            me = await there.client(token).identity.own_identity()
            assert (me.owner_id, me.groups) == ("ada@example", ["crew"])

    inside(story, jwt_keys=str(tmp_path / "keys"), **names, **TRUSTED)


def test_keys_are_fetched_from_where_their_issuer_shows_them() -> None:
    asked: list[str] = []

    class Shown(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(key_set().encode())

        def log_message(self, format: str, *args: Any) -> None:
            """Nobody reads it."""

    server = HTTPServer(("127.0.0.1", 0), Shown)
    Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/keys"

    async def story(there: Guarded) -> None:
        assert [await status(there, bearer(signed())) for _ in range(3)] == [200] * 3
        assert asked == ["/keys"], "they are kept"
        assert await status(there, bearer(signed(EC_KEY, "ES256", "e"))) == 200
        assert await status(there, bearer(signed(kid="unknown"))) == 401
        assert await status(there, bearer("a.b.c")) == 401

    try:
        inside(story, jwt_keys=url, **TRUSTED)
    finally:
        server.shutdown()
        server.server_close()


def test_keys_that_cannot_be_had_are_no_reason_to_let_anybody_in() -> None:
    async def story(there: Guarded) -> None:
        reply = await ask(there.url, "GET", ME, headers=bearer(signed()))
        assert reply.status == 503 and "retry-after" in reply.headers

    inside(story, jwt_keys="http://127.0.0.1:9/keys")


@pytest.mark.parametrize("content", [None, b"", b"{}", b"\xff", b'{"keys":[]}'])
def test_a_file_without_keys_is_refused_when_the_node_starts(
    content: bytes | None, tmp_path: Path
) -> None:
    file = tmp_path / "keys"
    if content is not None:
        file.write_bytes(content)

    async def story(there: Guarded) -> None:
        raise AssertionError("it started")

    with pytest.raises(InvalidArgument, match="Expected keys in"):
        inside(story, jwt_keys=str(file))
