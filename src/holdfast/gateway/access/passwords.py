"""What is kept of passwords and tokens: enough to recognise them, and of no use to sign in with."""

import hashlib
import hmac
import secrets

_N, _R, _P = 2**14, 8, 1  # 16 MB and about 50 ms for each guess
_SALT_BYTES = 16
_TOKEN_PREFIX = "hf_"
_ID_BYTES, _SECRET_BYTES = 6, 32


def kept_password(password: str, salt: bytes | None = None) -> bytes:
    """Salt and hash of a password."""
    salt = secrets.token_bytes(_SALT_BYTES) if salt is None else salt
    return salt + hashlib.scrypt(password.encode(), salt=salt, n=_N, r=_R, p=_P)


def is_password(password: str, kept: bytes) -> bool:
    """Whether a password is the one of which this is kept. It takes its time."""
    return hmac.compare_digest(kept_password(password, kept[:_SALT_BYTES]), kept)


def new_token() -> tuple[str, str, bytes]:
    """A token: what names it, what the machine has to say, and what is kept of that."""
    id_ = secrets.token_hex(_ID_BYTES)
    token = f"{_TOKEN_PREFIX}{id_}_{secrets.token_urlsafe(_SECRET_BYTES)}"
    return id_, token, token_digest(token)


def token_id(token: str) -> str | None:
    """What names the token that a machine says; None if it is none of ours."""
    if not token.startswith(_TOKEN_PREFIX):
        return None
    return token.removeprefix(_TOKEN_PREFIX).partition("_")[0]


def token_digest(token: str) -> bytes:
    """What is kept of a token: it is random, and needs no salt and no time."""
    return hashlib.sha256(token.encode()).digest()


def is_token(token: str, digest: bytes) -> bool:
    """Whether a token is the one of which this is kept."""
    return hmac.compare_digest(token_digest(token), digest)
