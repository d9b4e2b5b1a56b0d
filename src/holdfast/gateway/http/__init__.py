"""The API over HTTP: a table of endpoints, the app that serves it, the server that runs the app."""

from holdfast.gateway.http.app import create_app
from holdfast.gateway.http.server import HttpServer

__all__ = ["HttpServer", "create_app"]
