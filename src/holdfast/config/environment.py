"""The names in the environment that begin with HOLDFAST_: which are known, and what for.

An unknown one is refused, as an unknown name in `holdfast.toml` is: a setting with a typing error
would be a setting that nobody has.
"""

import re
from collections.abc import Iterable
from difflib import get_close_matches

PREFIX = "HOLDFAST_"

# Read by clients and by the command itself; no setting of a node.
CLIENT = {
    "HOLDFAST_URL": "the node, or the members of a cluster, that clients speak to",
    "HOLDFAST_TOKEN": "who a client is",
    "HOLDFAST_CA": "whose certificates a client trusts: a file (PEM)",
    "HOLDFAST_DEBUG": "1: a command that fails shows the traceback",
}
# Set by holdfast for the processes that it starts.
_INSIDE = ("HOLDFAST_DETACHED", "HOLDFAST_DEMO_")
# Read by tests and benchmarks of holdfast itself.
_TESTS = (
    "HOLDFAST_BENCH_", "HOLDFAST_EXAMPLES", "HOLDFAST_KILLS", "HOLDFAST_PAUSES",
    "HOLDFAST_RESTARTS", "HOLDFAST_SEED", "HOLDFAST_SEEDS", "HOLDFAST_SHIM_", "HOLDFAST_SIZE",
    "HOLDFAST_TICKS",
)  # fmt: skip
# What Kubernetes sets for a Service called holdfast, or holdfast-and-so-on.
_SERVICE_LINK = re.compile(r"HOLDFAST(_\w+)?_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_\w+)?)")
LINKS_ADVICE = "Kubernetes sets it for a Service: give the pod enableServiceLinks: false"


def variable_of(setting: str) -> str:
    """The name of a setting in the environment."""
    return PREFIX + setting.upper()


def is_known(name: str, settings: Iterable[str]) -> bool:
    """Whether a name in the environment means anything to holdfast, or is nobody's of ours."""
    if not name.startswith(PREFIX) or name in CLIENT:
        return True
    if name.removeprefix(PREFIX).lower() in settings and name.isupper():
        return True
    return any(
        name.startswith(known) if known.endswith("_") else name == known
        for known in (*_INSIDE, *_TESTS)
    )


def _unknown_problem(name: str, settings: Iterable[str]) -> str:
    """What is wrong with an unknown name, and which one was meant."""
    settings = tuple(settings)
    text = f"{name} in the environment is not a setting"
    if _SERVICE_LINK.fullmatch(name):
        return f"{text}; {LINKS_ADVICE}"
    known = [each.removeprefix(PREFIX) for each in (*map(variable_of, settings), *CLIENT)]
    return text + nearest(name.upper().removeprefix(PREFIX), known, PREFIX)


def unknown_problems(
    names: Iterable[str], settings: Iterable[str], *, of_client: bool = False
) -> list[str]:
    """What is wrong with the names in an environment.

    Kubernetes sets variables for a Service in every pod of its namespace. A client reads none of
    them, so they do not matter to it.
    """
    settings = tuple(settings)
    return [
        _unknown_problem(name, settings)
        for name in sorted(names)
        if not is_known(name, settings) and not (of_client and _SERVICE_LINK.fullmatch(name))
    ]


def nearest(name: str, known: Iterable[str], prefix: str = "") -> str:
    """A question whether the most similar name was meant; nothing where none is similar."""
    found = get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"; did you mean {prefix}{found[0]}?" if found else ""
