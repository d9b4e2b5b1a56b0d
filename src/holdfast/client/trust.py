"""Who asks a node elsewhere, and whose certificates are trusted."""

import os
import ssl
from base64 import b64encode
from urllib.parse import SplitResult, unquote

from holdfast.errors import InvalidArgument

TOKEN_VARIABLE = "HOLDFAST_TOKEN"
CA_VARIABLE = "HOLDFAST_CA"


def credentials(parts: SplitResult, token: str | None) -> dict[str, str]:
    """The header by which a request says who asks; none where nobody has to say."""
    if token is None and parts.username is not None:
        said = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        return {"Authorization": f"Basic {b64encode(said.encode()).decode()}"}
    if token == "":
        raise InvalidArgument("Expected a token, but found an empty one; leave it out for none")
    token = token or os.environ.get(TOKEN_VARIABLE)
    if token and not (token.isascii() and token.isprintable()):
        raise InvalidArgument(
            f"Expected a token of plain characters, but the one given, as in {TOKEN_VARIABLE}, has"
            " others, such as the end of a line"
        )
    return {"Authorization": f"Bearer {token}"} if token else {}


def trusted(ca: str | os.PathLike[str] | None, verify: bool) -> ssl.SSLContext | bool:
    """Whose certificates are good enough; True: those that this machine trusts."""
    if not verify or ca is None:
        return verify
    try:
        return ssl.create_default_context(cafile=ca)
    except (OSError, ValueError) as error:
        reason = "it has none"
        if isinstance(error, OSError) and not isinstance(error, ssl.SSLError):
            reason = (error.strerror or "it cannot be read").lower()
        raise InvalidArgument(
            f"Expected certificates of authorities (PEM) in {os.fspath(ca)}, but {reason}"
        ) from error
