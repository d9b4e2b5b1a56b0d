"""Who sends a request: by a token of this node, by one that an issuer signed, or by a password."""

import asyncio
import base64
import hashlib

from holdfast.clock import Clock
from holdfast.config import Config
from holdfast.engine.asker import Asker
from holdfast.engine.identity.queries import FindPassword, FindToken
from holdfast.engine.identity.values import OwnerType
from holdfast.errors import Unauthorized
from holdfast.gateway.access.asking import Asked
from holdfast.gateway.access.guesses import Guesses
from holdfast.gateway.access.passwords import is_password, is_token, token_id
from holdfast.limits import PASSWORDS_KEPT_MAX

_PASSWORD_SECONDS = 60.0  # a password that was right is believed for so long: to check it is slow


class Authentication:
    """Reads the `Authorization` header of requests."""

    def __init__(self, config: Config, clock: Clock, asked: Asked) -> None:
        self._clock = clock
        self._asked = asked
        self._has_passwords = config.basic_authentication
        self._signatures = None
        if config.jwt_keys:
            # Cryptography takes a moment to load, which a node without such tokens does not wait.
            from holdfast.gateway.access.signatures import Signatures

            self._signatures = Signatures(config)
        # What is kept of a password that was right -> until when, and what was kept of it then.
        self._right: dict[bytes, tuple[float, bytes]] = {}
        self._guesses = Guesses(clock)
        self._checking: dict[tuple[bytes, bytes], asyncio.Task[bool]] = {}

    async def asker(self, header: bytes | None, address: str) -> Asker:
        """Who sends a request with this header; Unauthorized if nobody known does.

        The address that it comes from counts where passwords are guessed.
        """
        if header is None:
            raise Unauthorized("There is no Authorization header")
        scheme, _, credentials = header.decode("latin-1").strip().partition(" ")
        credentials = credentials.strip()
        if scheme.lower() == "bearer":
            id_ = token_id(credentials)
            if id_ is not None:
                return await self._by_token(id_, credentials)
            if self._signatures is not None:
                return await self._signatures.bearer(credentials)
            raise Unauthorized("Expected a token of this node, but found another: it knows no keys")
        if scheme.lower() == "basic" and self._has_passwords:
            return await self._by_password(credentials, address)
        expected = "Bearer or Basic" if self._has_passwords else "Bearer"
        raise Unauthorized(f"Expected {expected} in the Authorization header, but found {scheme!r}")

    async def signed_until_ms(self, token: str) -> int:
        """Until when a token is valid that an issuer signed; Unauthorized if it is none."""
        if self._signatures is None:
            raise Unauthorized("Expected a token of this node, but found another: it knows no keys")
        return int((await self._signatures.claims(token))["exp"]) * 1_000

    async def _by_token(self, id_: str, token: str) -> Asker:
        known = await self._asked.ask_any(FindToken(id_))
        if known is None or known.signed_in is not None or not is_token(token, known.digest):
            raise Unauthorized("Expected a token of this node, but it is unknown or was deleted")
        expires_ms = known.expires_ms
        if expires_ms and expires_ms <= self._clock.now_ms():
            raise Unauthorized("Expected a token that is valid, but its time is over")
        return Asker(known.client_id, OwnerType.CLIENT)

    async def _by_password(self, credentials: str, address: str) -> Asker:
        try:
            said = base64.b64decode(credentials, validate=True).decode()
        except ValueError as error:  # no ASCII, no base64, or no UTF-8 in it
            raise Unauthorized("Expected name:password in base64, but found none") from error
        username, _, password = said.partition(":")
        kept = await self._asked.ask_any(FindPassword(username))
        seen = hashlib.sha256(credentials.encode()).digest()
        now = self._clock.monotonic()
        until, then = self._right.get(seen, (0.0, b""))
        was_right = bool(kept) and then == kept
        if was_right and now < until:
            return Asker(username)
        checking = self._checking.get((seen, kept))  # many requests of one client are one guess
        if checking is None:
            if not was_right:  # others' wrong guesses do not keep out who was right before
                self._guesses.begin(username, address)
            # A name that nobody has takes as long as a wrong password.
            work = asyncio.to_thread(is_password, password, kept or bytes(80))
            checking = self._checking[seen, kept] = asyncio.ensure_future(work)
            checking.add_done_callback(lambda _: self._checking.pop((seen, kept)))
        if not await asyncio.shield(checking) or not kept:
            raise Unauthorized("Expected a known name and its password, but they are not")
        self._guesses.right(username, address)
        if len(self._right) >= PASSWORDS_KEPT_MAX:
            self._right.clear()
        self._right[seen] = now + _PASSWORD_SECONDS, kept
        return Asker(username)
