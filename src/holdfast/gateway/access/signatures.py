"""JSON Web Tokens: whose keys are trusted, and what a token says of its bearer."""

import asyncio
from pathlib import Path
from typing import Annotated, Any

import jwt
import msgspec
from jwt import PyJWK, PyJWKClient, PyJWKSet

from holdfast.config import Config
from holdfast.engine.asker import Asker
from holdfast.engine.identity.values import OwnerType
from holdfast.errors import InvalidArgument, Unauthorized, Unavailable
from holdfast.limits import SUBJECT_CHARS_MAX

# Signatures by a key that only the issuer has. A secret shared with the issuer would let this node,
# and anybody who reads its files, make tokens of their own.
_ALGORITHMS = [
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
]  # fmt: skip
# What a token makes PyJWT raise: its own errors, and others for another kind of key, numbers that
# are none or too large, and JSON that is nested too deeply.
_ODD = (jwt.PyJWTError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError)
_NAME = r"\A(?=.*\S)[^\x00-\x1f\x7f]+\Z"  # something that can be seen, in one line
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=SUBJECT_CHARS_MAX, pattern=_NAME)]
_LEEWAY_SECONDS = 30  # clocks differ
_KEYS_SECONDS = 300  # for how long keys are kept that were fetched
_FETCH_SECONDS_MAX = 10


class Signatures:
    """Reads the tokens that trusted issuers signed."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._source = config.jwt_keys
        self._fetching: PyJWKClient | None = None
        self._keys: list[Any] = []
        if self._source.startswith(("https://", "http://")):
            self._fetching = PyJWKClient(
                self._source, cache_keys=True, lifespan=_KEYS_SECONDS, timeout=_FETCH_SECONDS_MAX
            )
        elif self._source:
            self._keys = _keys_in(Path(self._source))

    async def bearer(self, token: str) -> Asker:
        """Whom a token names; Unauthorized if it is not to be trusted."""
        return self.named_in(await self.claims(token))

    async def claims(self, token: str) -> dict[str, Any]:
        """What a token says; Unauthorized if it is not to be trusted."""
        if self._fetching is not None:
            try:
                key = await asyncio.to_thread(self._fetching.get_signing_key_from_jwt, token)
            except jwt.PyJWKClientConnectionError as error:
                raise Unavailable(f"Expected the keys of the issuer, but {error}") from error
            except _ODD as error:
                raise _untrusted(error) from error
            return self._read(token, [key.key])
        if not self._keys:
            raise Unauthorized("Expected a token of this node, but found another: it knows no keys")
        return self._read(token, self._candidates(token))

    def _candidates(self, token: str) -> list[Any]:
        """The key that the token names; all where it, or they, have no names."""
        try:
            named = jwt.get_unverified_header(token).get("kid")
        except _ODD as error:
            raise _untrusted(error) from error
        known = [each for each in self._keys if isinstance(each, PyJWK) and each.key_id == named]
        found = known or self._keys
        return [each.key if isinstance(each, PyJWK) else each for each in found]

    def _read(self, token: str, keys: list[Any]) -> dict[str, Any]:
        config, refusal = self._config, Exception("no key")
        for key in keys:
            try:
                return jwt.decode(
                    token,
                    key,
                    algorithms=_ALGORITHMS,
                    issuer=config.jwt_issuer or None,
                    audience=config.jwt_audience or None,
                    leeway=_LEEWAY_SECONDS,
                    options={
                        "require": ["exp", config.jwt_user_claim],
                        "verify_aud": bool(config.jwt_audience),
                    },
                )
            except _ODD as error:
                refusal = error
        raise _untrusted(refusal)

    def named_in(self, claims: dict[str, Any]) -> Asker:
        """Whom claims name; Unauthorized if that is no name."""
        try:
            name = msgspec.convert(claims[self._config.jwt_user_claim], _Name)
            groups = claims.get(self._config.jwt_groups_claim) or []
            found = Asker(name, OwnerType.USER, tuple(msgspec.convert(groups, list[_Name])))
            "".join((found.sub, *found.groups)).encode()  # as it goes on the log
        except (msgspec.ValidationError, UnicodeEncodeError) as error:
            raise _untrusted(error) from error
        return found


def _untrusted(error: Exception) -> Unauthorized:
    return Unauthorized(f"Expected a token that can be trusted, but {error}")


def _keys_in(path: Path) -> list[Any]:
    """The keys in a file: a key in PEM, or a set of them in JSON."""
    try:
        content = path.read_bytes()
        if content.lstrip().startswith(b"{"):
            return list(PyJWKSet.from_json(content.decode()).keys)
        if b"-----BEGIN" not in content:
            raise ValueError("there are none")
        return [content]
    except (OSError, UnicodeDecodeError, jwt.PyJWTError, ValueError, TypeError) as error:
        raise InvalidArgument(
            f"Expected keys in {path} (PEM, or a JSON Web Key Set), but {error}"
        ) from error
