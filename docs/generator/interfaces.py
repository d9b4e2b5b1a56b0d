"""Pages about the ways in: HTTP, the command line, Python."""

import inspect
import types
import typing
from typing import Any

import msgspec
import typer

import holdfast
import holdfast.testing
from generator.markdown import code, first_line, page, prose, table
from generator.source import Method, fields_of, function_of, methods_of
from generator.units import value_text
from holdfast.cli.main import app
from holdfast.gateway.http.endpoints import ENDPOINTS
from holdfast.gateway.shapes import Problem, Question, Shape
from holdfast.limits import VERSION_MAX, WHOLE_MAX

# --- HTTP -------------------------------------------------------------------------------------


def http_page() -> str:
    """The endpoints and the shapes that go in and out."""
    rows = [
        (
            code(endpoint.method), code(endpoint.path), endpoint.summary,
            _shape_link(endpoint.request), _shape_link(endpoint.answer),
            "yes" if endpoint.waits else "",
        )
        for endpoint in ENDPOINTS
    ]  # fmt: skip
    shapes: dict[type[Any], None] = {}
    for endpoint in ENDPOINTS:
        for shape in (endpoint.request, endpoint.answer):
            _collect(shape, shapes)
    _collect(Problem, shapes)
    parts: list[str] = []
    for shape in sorted(shapes, key=lambda shape: shape.__name__):
        parts += [f"### {shape.__name__}", prose(shape.__doc__), _shape_table(shape)]
    return page(
        "HTTP",
        "Bodies are JSON. Keys are strings, because they do not fit a JavaScript number. Times are"
        " RFC 3339. A request with an unknown field is rejected; responses may gain fields in later"
        " versions. `GET /openapi` returns all of this as OpenAPI 3.1.",
        "With authorization a request needs a token: `Authorization: Bearer TOKEN`."
        " [Permissions](permissions.md#what-requests-need) lists what each endpoint needs.",
        "## Endpoints",
        table(("Method", "Path", "Purpose", "Request", "Response", "Long poll"), rows),
        "The status is 204 without a response body and 200 with one. It is 201 when a user, a"
        " group, a role or an authorization is created. A long poll waits for `waitMs` or"
        " `requestTimeout`"
        " of the request. Errors are a [Problem](#problem); [Errors](errors.md) lists the codes.",
        "## Shapes",
        *parts,
    )


def _shape_link(shape: type[Any] | None) -> str:
    if shape is None:
        return ""
    return f"[{shape.__name__}](#{shape.__name__.lower()})" if _is_shape(shape) else "text"


def _is_shape(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Shape)


def _collect(kind: Any, found: dict[type[Any], None]) -> None:
    """Adds a shape and all shapes inside it."""
    if _is_shape(kind):
        if kind not in found:
            found[kind] = None
            for field in msgspec.structs.fields(kind):
                _collect(field.type, found)
        return
    for part in typing.get_args(kind):
        _collect(part, found)


def _shape_table(shape: type[Any]) -> str:
    comments = {
        field.name: field.comment
        for each in reversed(shape.__mro__)
        if _is_shape(each)
        for field in fields_of(each)
    }
    rows = []
    for field in msgspec.structs.fields(shape):
        kind = _type_text(field.type)
        rows.append(
            (code(field.encode_name), kind, _default_text(shape, field), comments[field.name])
        )
    return table(("Field", "Type", "Default", ""), rows)


_JSON_NAMES = {
    "str": "string", "int": "integer", "bool": "boolean", "float": "number",
    "Raw": "any JSON", "datetime": "time", "NoneType": "null",
}  # fmt: skip


def _type_text(kind: Any) -> str:
    """A type in the words of JSON."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        if arguments[1].le is not None:
            low, high = _whole(arguments[1].ge), _whole(arguments[1].le)
            return f"{_type_text(arguments[0])} from {low} to {high}"
        known = [code(name) for name in _properties(arguments[1])]
        return _type_text(arguments[0]) + (f" of {', '.join(known)}" if known else "")
    if origin is list:
        return f"list of {_type_text(arguments[0])}"
    if origin is dict:
        return "object"
    if origin in (types.UnionType, typing.Union):
        return " or ".join(_type_text(part) for part in arguments if part is not msgspec.UnsetType)
    if _is_shape(kind):
        return _shape_link(kind)
    if hasattr(kind, "__members__"):
        return " / ".join(code(member.value) for member in kind)
    name: str = kind.__name__
    return _JSON_NAMES.get(name, name)


def _whole(number: int) -> str:
    """A bound for people; the largest are powers of two."""
    by_size = {WHOLE_MAX: "2^63 - 1", -WHOLE_MAX - 1: "-2^63", VERSION_MAX: "2^31 - 1"}
    return by_size.get(number) or f"{number:,}"


def _properties(meta: msgspec.Meta) -> list[str]:
    """The fields of an object that only a schema tells of."""
    schema = meta.extra_json_schema or {}
    return list(schema.get("properties") or schema.get("items", {}).get("properties", {}))


def _default_text(shape: type[Any], field: Any) -> str:
    if not issubclass(shape, Question):
        return ""
    if field.required:
        return "required"
    if field.default_factory is not msgspec.NODEFAULT or field.default is None:
        return code("null")
    if _is_shape(type(field.default)):
        return "its defaults"
    if isinstance(field.default, str):
        return code(msgspec.json.encode(field.default).decode())
    if field.encode_name.endswith("Ms") and field.default:
        return f"{code(str(field.default))} ({value_text('MS', field.default)})"
    return code(msgspec.json.encode(field.default).decode())


# --- the command line -------------------------------------------------------------------------


def cli_page() -> str:
    """Every command with its arguments, options and examples."""
    root: Any = typer.main.get_command(app)
    commands: list[tuple[str, Any]] = []
    for name, command in root.commands.items():
        members = getattr(command, "commands", None)
        if members is None:
            commands.append((f"holdfast {name}", command))
        else:
            commands += [(f"holdfast {name} {sub}", each) for sub, each in members.items()]
    rows = [
        (f"[`{name}`](#{name.replace(' ', '-')})", first_line(command.help))
        for name, command in commands
    ]
    parts = [part for name, command in commands for part in _command(name, command)]
    return page(
        "Command line",
        "Every command takes `--help`, and `--json` for other programs. Exit codes are in"
        " [Errors](errors.md#exit-codes). With `HOLDFAST_DEBUG=1` an error shows its traceback.",
        table(("Command", ""), rows),
        *parts,
    )


def _command(name: str, command: Any) -> list[str]:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option"]
    usage = " ".join(
        (name, *(_argument_text(each) for each in arguments), *(["[OPTIONS]"] if options else []))
    )
    parts = [f"## {name}", prose(command.help), f"```text\n{usage}\n```"]
    rows = [(code(_argument_text(each)), _default(each), each.help or "") for each in arguments]
    hints = typing.get_type_hints(inspect.unwrap(command.callback))
    rows += [
        (code(_option_text(each, hints[each.name])), _default(each), each.help or "")
        for each in options
    ]
    parts.append(table(("Argument or option", "Default", ""), rows))
    examples = (command.epilog or "").replace("\b", "").strip().removeprefix("Examples:")
    lines = [line.strip() for line in examples.splitlines() if line.strip()]
    if lines:
        parts.append("```sh\n" + "\n".join(map(_commented, lines)) + "\n```")
    return parts


def _argument_text(parameter: Any) -> str:
    name = (parameter.metavar or parameter.name).strip("[]").upper()
    return name if parameter.required else f"[{name}]"


def _option_text(parameter: Any, hint: Any) -> str:
    """`--name KIND`, or only the name where it is a switch."""
    names = " / ".join((*parameter.opts, *parameter.secondary_opts))
    if hint is bool:
        return names
    return f"{names} {parameter.metavar or _kind(hint)}"


def _kind(hint: Any) -> str:
    """What is to be given for an option."""
    if typing.get_origin(hint) is typing.Literal:
        return "|".join(typing.get_args(hint))
    if isinstance(hint, types.UnionType):
        return _kind(next(part for part in typing.get_args(hint) if part is not types.NoneType))
    return {"int": "NUMBER", "Path": "FOLDER"}.get(hint.__name__, "TEXT")


def _default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    if parameter.default is None or parameter.default is False:
        return ""
    return "yes" if parameter.default is True else code(str(parameter.default))


def _commented(line: str) -> str:
    """An example; what stands behind a wide gap is a remark."""
    command, gap, remark = line.partition("   ")
    return f"{command}  # {remark.strip()}" if gap and remark.strip() else line


# --- Python -----------------------------------------------------------------------------------


def python_page() -> str:
    """The public names with their signatures."""
    parts: list[str] = []
    for module, lead in (
        (holdfast, "What a program needs."),
        (holdfast.testing, "What tests need."),
    ):
        parts += [f"## `{module.__name__}`", lead]
        for name in module.__all__:
            if not name.startswith("_"):
                parts += _public(name, getattr(module, name))
    return page(
        "Python",
        "The public names. A `Span` is a number of seconds or a `timedelta`. What ends in `View`,"
        " `Receipt` or `Definition` is a shape of [HTTP](http.md#shapes), with its fields in"
        " `snake_case`. The words of processes have [a page of their own](process-dsl.md).",
        *parts,
    )


def _public(name: str, value: Any) -> list[str]:
    if inspect.isfunction(value):
        function = inspect.unwrap(value)
        method = function_of(function)
        return [f"### {name}", first_line(value.__doc__), _block([method])]
    parts = [f"### {name}", first_line(value.__doc__)]
    if hasattr(value, "__members__"):
        return [*parts, ", ".join(code(f"{name}.{member.name}") for member in value)]
    if issubclass(value, msgspec.Struct):
        fields = [f"{each.name}: {each.annotation} = {each.default}" for each in fields_of(value)]
        return [*parts, "```text\n" + "\n".join(fields) + "\n```"]
    methods = [each for each in _methods(value) if _is_wanted(name, each)]
    return [*parts, *_described(name, methods)]


def _methods(kind: type[Any]) -> list[Method]:
    """A class's own methods, and those of the classes under it that are not public themselves."""
    found: dict[str, Method] = {}
    for each in kind.__mro__:
        ours = each.__module__.startswith("holdfast.")
        if each is not kind and (not ours or each.__name__ in holdfast.__all__):
            continue
        for method in methods_of(each):
            found.setdefault(method.name, method)
    return list(found.values())


_MADE_ELSEWHERE = (
    "Holdfast",
    "ContentPublisher",
    "ContentQueue",
    "ContentSubscriber",
    "Handle",
    "ProcessHandle",
    "Task",
    "BoundTask",
    "Worker",
    "TestApp",
)


def _is_wanted(name: str, method: Method) -> bool:
    """A constructor is shown only where users call it."""
    return method.name != "__init__" or name not in _MADE_ELSEWHERE


def _described(name: str, methods: list[Method]) -> list[str]:
    rows = []
    for method in methods:
        signature = method.signature
        if "property" in method.decorators:
            signature = signature.replace("()", "", 1).replace(" -> ", ": ")
        if "classmethod" in method.decorators:
            signature = f"{name}.{signature}"
        rows.append((code(signature.replace("__init__", name).replace(" -> None", "")), method.doc))
    return [table(("", ""), rows)] if rows else []


def _block(methods: list[Method]) -> str:
    return "```text\n" + "\n".join(method.signature for method in methods) + "\n```"
