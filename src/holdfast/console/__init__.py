"""The web console: pages over the API's services, served beside the API.

Whatever it can do, the API can: a page asks the services that an endpoint asks, as the visitor.
"""

from holdfast.console.app import CONSOLE_PATH, Console

__all__ = ["CONSOLE_PATH", "Console"]
