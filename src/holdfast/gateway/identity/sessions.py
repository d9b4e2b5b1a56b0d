"""Sessions of the console: who signed in, by what, and until when.

A session is a token that the node gave to a browser. It is on the log like other tokens, so every
process and every member knows it, and one that is ended is ended everywhere. It proves only who
somebody is: what it was made by, a token or a password, is looked at again with each request, and
what they may do is decided as for any other request.
"""

import base64
import hashlib
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from holdfast.clock import Clock
from holdfast.config import Config
from holdfast.engine.asker import Asker
from holdfast.engine.identity.queries import FindPassword, FindToken, FoundToken, ListTokens
from holdfast.engine.identity.values import (
    DECIDING_PARTITION,
    OwnerType,
    Token,
    TokenIntent,
    TokenRef,
)
from holdfast.engine.kernel import Command
from holdfast.errors import HoldfastError, Unauthorized
from holdfast.gateway.access.access import Access
from holdfast.gateway.access.asking import Asked, asking
from holdfast.gateway.access.needs import Everyone
from holdfast.gateway.access.passwords import is_token, new_token, token_id
from holdfast.gateway.distribution.service import DistributionService
from holdfast.limits import (
    DEPLOYMENT_WAIT_MS,
    SESSIONS_CLEARED_MAX,
    SESSIONS_PER_OWNER_MAX,
)
from holdfast.records import ValueType
from holdfast.records.keys import NO_KEY

if TYPE_CHECKING:  # cryptography takes a moment to load
    from holdfast.gateway.access.signatures import Signatures

_TOKEN, _PASSWORD = "token ", "password "


class OidcSettings(NamedTuple):
    """The identity provider that people sign in at."""

    issuer: str
    client_id: str
    client_secret_file: str  # "": none
    redirect_url: str  # "": by the name that the browser uses
    scopes: str


class SignedIn(NamedTuple):
    """What an ID token says: whom it names, and everything else."""

    asker: Asker
    claims: dict[str, Any]


class OpenedSession(NamedTuple):
    """A new session: the secret is for the browser's cookie, and is told this once."""

    secret: str
    lasts_ms: int


class SessionService:
    """Opens, checks and ends sessions."""

    def __init__(
        self,
        access: Access,
        asked: Asked,
        distributions: DistributionService,
        config: Config,
        clock: Clock,
    ) -> None:
        self._access = access
        self._asked = asked
        self._distributions = distributions
        self._config = config
        self._clock = clock
        self._signatures: dict[str, Signatures] = {}  # by where the keys of the provider are

    @property
    def has_passwords(self) -> bool:
        """Whether people may sign in with a name and a password."""
        return self._config.basic_authentication

    @property
    def oidc(self) -> OidcSettings | None:
        """Where else people may sign in."""
        config = self._config
        if not config.oidc_issuer:
            return None
        return OidcSettings(
            config.oidc_issuer, config.oidc_client_id, config.oidc_client_secret_file,
            config.oidc_redirect_url, config.oidc_scopes,
        )  # fmt: skip

    async def named_in(self, id_token: str, keys: str) -> SignedIn:
        """Whom the identity provider names; Unauthorized unless it signed that for this node."""
        from holdfast.gateway.access.signatures import Signatures

        known = self._signatures.get(keys)
        if known is None:
            config = msgspec.structs.replace(
                self._config, jwt_keys=keys, jwt_issuer=self._config.oidc_issuer,
                jwt_audience=self._config.oidc_client_id,
            )  # fmt: skip
            known = Signatures(config)
            self._signatures = {keys: known}
        claims = await known.claims(id_token)
        return SignedIn(known.named_in(claims), claims)

    # --- opening ------------------------------------------------------------------------------

    async def by_token(self, token: str, address: str) -> OpenedSession:
        """For who has a token of this node, or one that an issuer signed."""
        asker = await self._known(f"Bearer {token}", address)
        id_ = token_id(token)
        if id_ is None:
            ends_ms = await self._access.signed_until_ms(token)
            return await self._open(asker, "", ends_ms)
        known = await self._asked.ask_any(FindToken(id_))
        return await self._open(asker, _TOKEN + id_, known.expires_ms if known else 0)

    async def by_password(self, username: str, password: str, address: str) -> OpenedSession:
        """For who knows a password; wrong ones are counted as they are elsewhere."""
        if ":" in username:  # would be a part of the password
            raise Unauthorized("Expected a known name and its password, but they are not")
        basis = await self._password_basis(username)  # one that changes meanwhile is not this one
        said = base64.b64encode(f"{username}:{password}".encode()).decode()
        asker = await self._known(f"Basic {said}", address)
        if not basis:
            raise Unauthorized("Expected a known name and its password, but they are not")
        return await self._open(asker, basis)

    async def by_issuer(self, asker: Asker) -> OpenedSession:
        """For whom the identity provider has named."""
        return await self._open(asker, "")

    # --- checking -----------------------------------------------------------------------------

    async def asker(self, secret: str) -> Asker:
        """Who has a session; Unauthorized if it is over, or what it was made by is."""
        session = await self._session(secret)
        if session is None or session.signed_in is None:
            raise Unauthorized("You are signed out")
        if session.expires_ms <= self._clock.now_ms():
            raise Unauthorized("Your session is over; sign in again")
        if session.basis and not await self._stands(session):
            raise Unauthorized("What you signed in with is not valid any more; sign in again")
        return Asker(session.client_id, session.signed_in, session.groups)

    async def _stands(self, session: Token) -> bool:
        if session.basis.startswith(_TOKEN):
            token = await self._asked.ask_any(FindToken(session.basis.removeprefix(_TOKEN)))
            return token is not None and token.client_id == session.client_id
        basis = await self._password_basis(session.client_id)
        return bool(basis) and session.basis == basis

    # --- ending -------------------------------------------------------------------------------

    async def end(self, secret: str) -> None:
        """Signs out; what is over already is no error."""
        session = await self._session(secret)
        if session is not None:
            await self._delete([session.id])

    # --- inside -------------------------------------------------------------------------------

    async def _known(self, authorization: str, address: str) -> Asker:
        asker = await self._access.admit(Everyone.KNOWN, authorization.encode(), address)
        assert asker is not None, "who is known has a name"
        return asker

    async def _open(self, asker: Asker, basis: str, ends_ms: int = 0) -> OpenedSession:
        now = self._clock.now_ms()
        expires_ms = now + self._config.console_session_ms
        expires_ms = min(expires_ms, ends_ms) if ends_ms else expires_ms
        id_, secret, digest = new_token()
        session = Token(id_, asker.sub, digest, expires_ms, asker.type, asker.groups, basis)
        with asking(None):  # the node gives it: who signs in may need no permission for that
            await self._clear(asker, now)
            await self._do(TokenIntent.CREATE, session)
        return OpenedSession(secret, expires_ms - now)

    async def _session(self, secret: str) -> Token | None:
        id_ = token_id(secret)
        found = None if id_ is None else await self._asked.ask_any(FindToken(id_))
        if found is None or found.signed_in is None or not is_token(secret, found.digest):
            return None
        return found

    async def _password_basis(self, username: str) -> str:
        kept = await self._asked.ask_any(FindPassword(username))
        return _PASSWORD + hashlib.sha256(b"holdfast session" + kept).hexdigest() if kept else ""

    async def _clear(self, asker: Asker, now: int) -> None:
        """Removes some that are over, and the oldest of who has too many."""
        found = await self._asked.ask(DECIDING_PARTITION, ListTokens(is_of_sessions=True))
        over = [each.id for each in found if each.expires_ms <= now][:SESSIONS_CLEARED_MAX]
        own = [each for each in found if _owner(each) == (asker.type, asker.sub)]
        own = sorted((each for each in own if each.expires_ms > now), key=lambda it: it.created_ms)
        surplus = own[: max(len(own) - SESSIONS_PER_OWNER_MAX + 1, 0)]
        await self._delete([*over, *(each.id for each in surplus)])

    async def _delete(self, ids: list[str]) -> None:
        with asking(None):
            for each in ids:
                with suppress(HoldfastError):  # somebody else has removed it
                    await self._do(TokenIntent.DELETE, TokenRef(each))

    async def _do(self, intent: TokenIntent, value: Token | TokenRef) -> None:
        command = Command(ValueType.TOKEN, intent, NO_KEY, value)
        (reply,) = await self._asked.submit(DECIDING_PARTITION, [command])
        if error := reply.error():
            raise error
        await self._distributions.finished([reply.key], DEPLOYMENT_WAIT_MS)


def _owner(session: FoundToken) -> tuple[OwnerType | None, str]:
    return session.signed_in, session.client_id
