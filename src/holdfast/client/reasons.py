"""Why a node could not be reached, in words that say what to do."""

import errno
import os
import socket
import ssl


def connect_reason(error: BaseException) -> str:
    """Why no connection came about."""
    cause = getattr(error, "os_error", None) or getattr(error, "certificate_error", None) or error
    if isinstance(cause, ssl.SSLCertVerificationError):
        why = cause.verify_message or "it cannot be verified"
        return f"its certificate is not trusted: {why}; HOLDFAST_CA names the file of its authority"
    if isinstance(cause, ssl.SSLError):
        if cause.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST"):
            return "it does not speak TLS: try http:// in place of https://"
        return f"TLS failed: {(cause.reason or 'unknown').lower().replace('_', ' ')}"
    if isinstance(cause, socket.gaierror):
        return "the host name is unknown"
    number = getattr(cause, "errno", None)
    if number in (None, errno.ECONNREFUSED):  # without one: several addresses were tried
        return "connection refused; is the node started, and is this its port?"
    return os.strerror(number).lower()
