"""Signing in to the console: by token, by password, or at an identity provider."""

from holdfast.console.signing.signing import SessionSigning

__all__ = ["SessionSigning"]
