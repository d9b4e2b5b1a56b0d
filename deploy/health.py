"""Exit code 0 if the node in this container works: what a health check runs."""

import os
import ssl
import sys
import urllib.error
import urllib.request

TIMEOUT_S = 4


def main() -> int:
    """Asks the node on this machine, whose certificate is made for another name."""
    scheme = "https" if os.environ.get("HOLDFAST_TLS_CERTIFICATE") else "http"
    url = f"{scheme}://127.0.0.1:{os.environ.get('HOLDFAST_PORT', '8080')}/v2/health"
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S, context=context):
            return 0
    except (urllib.error.URLError, OSError) as error:
        print(f"{url}: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
