"""How BPMN files say in text what a definition says in parts: expressions, literals, retries."""

import json
import re

RETRIES = "3"
"""Zeebe's own, where a task definition gives none: three attempts in all."""

_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_ATTEMPTS = re.compile(r"=\((.*)\) \+ 1", re.DOTALL)
_FAILURES = re.compile(r"=\((.*)\) - 1", re.DOTALL)


def expression(text: str) -> str:
    """What is always an expression, without its `=`."""
    return text.strip().removeprefix("=").strip()


def value_expression(text: str) -> str:
    """The expression for a text that is one behind `=`, and a plain number or string without."""
    if text.lstrip().startswith("="):
        return expression(text)
    stripped = text.strip()
    return stripped if _NUMBER.fullmatch(stripped) else json.dumps(text, ensure_ascii=False)


def failures(attempts: str) -> str:
    """Zeebe counts attempts in all, a definition the failures beyond the first."""
    attempts = attempts.strip()
    if not attempts.startswith("="):
        return str(max(int(attempts) - 1, 0))
    whole = _ATTEMPTS.fullmatch(attempts)
    if whole and _is_whole(whole[1]):
        return f"={whole[1]}"
    return f"=({expression(attempts)}) - 1"


def attempts(failures: str) -> str:
    """The way back: `failures(attempts(x)) == x`."""
    if not failures.startswith("="):
        return str(int(failures) + 1)
    less = _FAILURES.fullmatch(failures)
    if less and _is_whole(less[1]) and less[1] == less[1].strip() and not _is_sum(less[1]):
        return f"={less[1]}"
    return f"=({failures[1:]}) + 1"


def _is_sum(text: str) -> bool:
    """Whether reading `=text` back would take a `+ 1` off instead of adding a `- 1`."""
    whole = _ATTEMPTS.fullmatch(f"={text}")
    return whole is not None and _is_whole(whole[1])


def _is_whole(text: str) -> bool:
    """Whether the parentheses around a text belong together: none inside closes them."""
    depth = 0
    for part in re.findall(r'"(?:\\.|[^"\\])*"|[()]', text):
        depth += {"(": 1, ")": -1}.get(part, 0)
        if depth < 0:
            return False
    return depth == 0
