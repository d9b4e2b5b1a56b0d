"""Proof that a form was made by this console for this visitor.

A cookie has a secret that scripts cannot read, and each form a token that is made of the secret and
of who the visitor is: another site can make a browser send the cookie, but cannot know the token.
Another port of the same machine may set cookies for this one; the gateway refuses what it sends by
its origin. The token looks different in every page, so that compressed pages tell nothing of it.
"""

import base64
import binascii
import hashlib
import hmac
import re
import secrets

from holdfast.console.visitor import PageHead, Visitor
from holdfast.errors import Forbidden

COOKIE = "holdfast-csrf"
FIELD = "csrf"
HEADER = "x-csrf-token"

_SECRET = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_TOKEN_BYTES = 32


def new_secret() -> str:
    """For a browser that has none yet."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


def secret_in(head: PageHead) -> str | None:
    """What the browser's cookie has, if it looks like one of ours."""
    found = head.cookies.get(COOKIE, "")
    return found if _SECRET.fullmatch(found) else None


def token_for(secret: str, visitor: Visitor) -> str:
    """For a form: the proof, masked by random bytes that stand before it."""
    mask = secrets.token_bytes(_TOKEN_BYTES)
    return base64.urlsafe_b64encode(mask + _masked(mask, _proof(secret, visitor))).decode()


def check(secret: str | None, token: str, visitor: Visitor) -> None:
    """Forbidden, unless the token is of a form that was made for the visitor."""
    try:
        given = base64.b64decode(token, altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        given = b""
    if secret is not None and len(given) == 2 * _TOKEN_BYTES:
        mask, proof = given[:_TOKEN_BYTES], given[_TOKEN_BYTES:]
        if hmac.compare_digest(_masked(mask, proof), _proof(secret, visitor)):
            return
    raise Forbidden(
        "Expected a form of this console, but its token is missing or out of date; go back, reload"
        " the page and send it again"
    )


def _proof(secret: str, visitor: Visitor) -> bytes:
    told = f"holdfast console form for {visitor.identity}"
    return hmac.digest(secret.encode(), told.encode(), hashlib.sha256)


def _masked(mask: bytes, value: bytes) -> bytes:
    return bytes(one ^ other for one, other in zip(mask, value, strict=True))
