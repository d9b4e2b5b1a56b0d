"""An identity provider of our own, over HTTP on loopback: as much as the flow needs of it.

It does what a provider does: it shows who signs in nothing but a redirect, gives a code once, and
takes it back only with the client's secret, the same redirect address and the verifier of PKCE.
"""

import base64
import hashlib
import json
import secrets
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, parse_qsl, unquote_plus, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

CLIENT, SECRET = "holdfast-console", "s3cret & more"
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


class OidcProvider:
    """The provider; `person` is who sits before the browser, `changed` is what it lies about."""

    def __init__(self) -> None:
        self.person: dict[str, Any] = {"preferred_username": "ann", "groups": ["on-call"]}
        self.changed: dict[str, Any] = {}
        self.key = KEY
        self.asked: list[dict[str, str]] = []  # what the browser was sent with
        self.refuses = False
        self._codes: dict[str, dict[str, str]] = {}
        handler = type("_Handler", (_ProviderHandler,), {"provider": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.issuer = f"http://127.0.0.1:{self._server.server_port}/realms/shop"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
        }

    def keys(self) -> dict[str, Any]:
        return {"keys": [json.loads(RSAAlgorithm.to_jwk(KEY.public_key())) | {"kid": "k"}]}

    def authorize(self, asked: dict[str, str]) -> str:
        """Where the browser goes back to."""
        self.asked.append(asked)
        assert asked["response_type"] == "code" and "openid" in asked["scope"].split()
        assert asked["code_challenge_method"] == "S256"
        back = {"state": asked["state"], "iss": self.issuer}
        if self.refuses:
            back |= {"error": "access_denied", "error_description": "You are not let in"}
        else:
            code = secrets.token_urlsafe()
            self._codes[code] = asked
            back["code"] = code
        return f"{asked['redirect_uri']}?{urlencode(back)}"

    def exchange(self, given: dict[str, str], authorization: str) -> dict[str, Any] | None:
        """Tokens for a code; None: refused."""
        said = base64.b64decode(authorization.removeprefix("Basic ")).decode()
        id_, _, secret = said.partition(":")
        asked = self._codes.pop(given.get("code", ""), None)
        verifier = hashlib.sha256(given.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(verifier).rstrip(b"=").decode()
        if (
            asked is None
            or (unquote_plus(id_), unquote_plus(secret)) != (CLIENT, SECRET)
            or given.get("redirect_uri") != asked["redirect_uri"]
            or challenge != asked["code_challenge"]
        ):
            return None
        now = int(time.time())
        claims: dict[str, Any] = {
            "iss": self.issuer, "aud": CLIENT, "sub": "4711", "iat": now, "exp": now + 300,
            "nonce": asked["nonce"], **self.person, **self.changed,
        }  # fmt: skip
        token = jwt.encode(claims, self.key, "RS256", {"kid": "k"})
        return {"id_token": token, "access_token": "for others", "token_type": "Bearer"}


class _ProviderHandler(BaseHTTPRequestHandler):
    provider: OidcProvider

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        path = parts.path.removeprefix("/realms/shop")
        if path == "/.well-known/openid-configuration":
            return self._json(200, self.provider.metadata())
        if path == "/keys":
            return self._json(200, self.provider.keys())
        if path == "/authorize":
            self.send_response(302)
            self.send_header("location", self.provider.authorize(dict(parse_qsl(parts.query))))
            self.send_header("content-length", "0")
            return self.end_headers()
        return self._json(404, {})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        given = {name: values[-1] for name, values in parse_qs(body).items()}
        found = self.provider.exchange(given, self.headers.get("authorization", ""))
        if found is None:
            return self._json(400, {"error": "invalid_grant"})
        return self._json(200, found)

    def _json(self, status: int, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        del format, args
