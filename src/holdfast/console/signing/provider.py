"""An identity provider as OpenID Connect describes it: what it says of itself, and its answers.

The authorization code flow with PKCE. What comes back through the browser is a code of no use by
itself; the node exchanges it with the provider directly, and believes the signed ID token alone.
"""

import asyncio
import base64
import hashlib
import hmac
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote_plus, urlencode, urlsplit

import msgspec

from holdfast.console.signing.cookies import is_loopback
from holdfast.engine.asker import Asker
from holdfast.errors import InvalidArgument, Unauthorized, Unavailable
from holdfast.gateway.identity.sessions import OidcSettings, SignedIn
from holdfast.limits import OIDC_ANSWER_BYTES_MAX, OIDC_FETCH_SECONDS_MAX, OIDC_KNOWN_SECONDS

_DISCOVERY = "/.well-known/openid-configuration"


class ProviderMetadata(msgspec.Struct, frozen=True):
    """What a provider says of itself."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)


class _Tokens(msgspec.Struct, frozen=True):
    """What a code is exchanged for; access tokens are for others, and not kept."""

    id_token: str


class SignInFlow(NamedTuple):
    """What one visit to the provider is recognised by."""

    state: str  # comes back through the browser
    nonce: str  # comes back inside of the ID token
    verifier: str  # is told to the provider when the code is exchanged

    @property
    def challenge(self) -> str:
        """What the provider is told of the verifier before."""
        return _unpadded(hashlib.sha256(self.verifier.encode()).digest())


class IdentityProvider:
    """The provider that the settings name."""

    def __init__(
        self,
        settings: OidcSettings,
        named_in: Callable[[str, str], Awaitable[SignedIn]],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        if not settings.client_id:
            raise InvalidArgument("Expected oidc_client_id beside oidc_issuer, but it is empty")
        _check_address(settings.issuer, "oidc_issuer")
        self.settings = settings
        self._named_in = named_in
        self._monotonic = monotonic
        self._known: tuple[float, ProviderMetadata] | None = None
        _secret(settings)  # a file that is missing is better known at the start

    async def leave(self, flow: SignInFlow, redirect_url: str) -> str:
        """Where the browser goes to sign in."""
        metadata = await self._metadata()
        asked = {
            "response_type": "code",
            "client_id": self.settings.client_id,
            "redirect_uri": redirect_url,
            "scope": self.settings.scopes,
            "state": flow.state,
            "nonce": flow.nonce,
            "code_challenge": flow.challenge,
            "code_challenge_method": "S256",
        }
        there = metadata.authorization_endpoint
        return f"{there}{'&' if '?' in there else '?'}{urlencode(asked)}"

    async def named(self, code: str, flow: SignInFlow, redirect_url: str) -> Asker:
        """Whom a code stands for; Unauthorized if the provider, or what it says, is against it."""
        metadata = await self._metadata()
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_url,
            "code_verifier": flow.verifier,
        }
        request = self._token_request(metadata, fields)
        answer = await asyncio.to_thread(_fetched, request, _Tokens)
        signed = await self._named_in(answer.id_token, metadata.jwks_uri)
        claims = signed.claims
        nonce = claims.get("nonce")
        if not isinstance(nonce, str) or not hmac.compare_digest(
            nonce.encode(), flow.nonce.encode()
        ):
            raise Unauthorized("Expected an ID token for this visit, but it is for another")
        if claims.get("azp", self.settings.client_id) != self.settings.client_id:
            raise Unauthorized("Expected an ID token for this node, but it is for another client")
        return signed.asker

    def _token_request(
        self, metadata: ProviderMetadata, fields: dict[str, str]
    ) -> urllib.request.Request:
        headers = {"accept": "application/json"}
        id_, secret = self.settings.client_id, _secret(self.settings)
        if not secret:
            fields |= {"client_id": id_}
        elif "client_secret_basic" in metadata.token_endpoint_auth_methods_supported:
            said = f"{quote_plus(id_)}:{quote_plus(secret)}"  # RFC 6749, 2.3.1
            headers["authorization"] = f"Basic {base64.b64encode(said.encode()).decode()}"
        else:
            fields |= {"client_id": id_, "client_secret": secret}
        body = urlencode(fields).encode()
        return urllib.request.Request(metadata.token_endpoint, body, headers)

    async def _metadata(self) -> ProviderMetadata:
        now = self._monotonic()
        if self._known is not None and now < self._known[0]:
            return self._known[1]
        issuer = self.settings.issuer
        request = urllib.request.Request(issuer.rstrip("/") + _DISCOVERY)
        found = await asyncio.to_thread(_fetched, request, ProviderMetadata)
        if found.issuer != issuer:
            raise Unavailable(
                f"Expected the identity provider {issuer!r}, but it calls itself {found.issuer!r};"
                " write oidc_issuer as it does"
            )
        for each in (found.authorization_endpoint, found.token_endpoint, found.jwks_uri):
            _check_address(each, "the identity provider")
        self._known = now + OIDC_KNOWN_SECONDS, found
        return found


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A code and a secret go to the address that was meant, and to no other."""

    def redirect_request(
        self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: Any
    ) -> None:
        return None


_opener = urllib.request.build_opener(_NoRedirects)


def _fetched(request: urllib.request.Request, kind: type[Any]) -> Any:
    try:
        with _opener.open(request, timeout=OIDC_FETCH_SECONDS_MAX) as answer:
            content = answer.read(OIDC_ANSWER_BYTES_MAX + 1)
    except urllib.error.HTTPError as error:
        with error:
            said = error.read(300).decode("utf-8", "replace")
        if error.code in (400, 401, 403):
            raise Unauthorized(
                f"The identity provider refused to sign you in: {said.strip()}"
            ) from error
        raise Unavailable(f"The identity provider answered {error.code}: {said}") from error
    except (OSError, ValueError) as error:
        raise Unavailable(f"The identity provider cannot be reached: {error}") from error
    try:
        return msgspec.json.decode(content[:OIDC_ANSWER_BYTES_MAX], type=kind)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise Unavailable(f"The identity provider answered something else: {error}") from error


def _check_address(url: str, what: str) -> None:
    """HTTPS, except on this machine: codes and names must not be read or changed on the way."""
    parts = urlsplit(url)
    if parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.netloc)):
        return
    raise InvalidArgument(f"Expected an https:// address for {what}, but found {url!r}")


def _secret(settings: OidcSettings) -> str:
    if not settings.client_secret_file:
        return ""
    try:
        return Path(settings.client_secret_file).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgument(
            f"Expected the secret of this client in oidc_client_secret_file, but {error}"
        ) from error


def _unpadded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
