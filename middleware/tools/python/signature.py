"""`Signature`: what a function may be given, as a JSON Schema; arguments made into its types."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel, PydanticUserError, TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError, PydanticSerializationError, to_jsonable_python
from typing_extensions import is_typeddict

from adapters.protocol import Json
from middleware.tools.python.docstrings import described
from middleware.tools.python.schemas import Definitions
from middleware.tools.tool import CallFailed

CONTEXT = "_context"
_MISSING = inspect.Parameter.empty
_NO_NAMES = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
Callee = Callable[..., object]


class CannotBeTool(Exception):
    """A function whose signature no model can be shown; the text says what of it."""


class Parameter(NamedTuple):
    """One that models see."""

    name: str
    shown: str
    """Its alias, if it has one."""
    adapter: TypeAdapter[Any]
    default: object
    positional: bool
    more: Json
    """Of its schema: what `Annotated` and the docstring say."""

    @property
    def required(self) -> bool:
        return self.default is _MISSING


@dataclass(frozen=True, slots=True)
class Signature:
    parameters: tuple[Parameter, ...]
    whole: bool
    """The only parameter is an object whose members are the arguments."""
    wants_context: bool
    description: str
    schema: Json
    returns: TypeAdapter[Any] | None
    """None: what it returns is not checked."""
    returned: str
    """The declared type, for people."""

    def bound(self, arguments: Mapping[str, object]) -> tuple[list[object], dict[str, object]]:
        """Validated and converted, as they are passed; raises `CallFailed`."""
        known = self.schema["properties"]
        problems = [f"{name}: no such argument" for name in arguments if name not in known]
        values: dict[str, object] = {}
        for one in self.parameters:
            given = dict(arguments) if self.whole else arguments.get(one.shown, _MISSING)
            if given is _MISSING:
                if one.required:
                    problems.append(f"{one.shown}: missing, it is required")
                continue
            try:
                values[one.name] = one.adapter.validate_python(given)
            except ValidationError as error:
                problems += _problems(error, () if self.whole else (one.shown,))
        if problems:
            raise CallFailed(f"invalid arguments: {'; '.join(problems)}")
        return self._passed(values)

    def _passed(self, values: dict[str, object]) -> tuple[list[object], dict[str, object]]:
        first = [one for one in self.parameters if one.positional]
        return [values.pop(one.name, one.default) for one in first], values


def _problems(error: ValidationError, path: tuple[str | int, ...]) -> Iterator[str]:
    for one in error.errors(include_url=False, include_context=False, include_input=False)[:20]:
        where = ".".join(map(str, (*path, *one["loc"])))
        yield f"{where}: {one['msg']}"


def signature_of(function: Callee) -> Signature:
    """Read a callable's signature, or raise `CannotBeTool`."""
    hints, said = _hints(function), described(_documented(function))
    parameters: list[Parameter] = []
    wants_context = False
    for one in _given(function):
        if one.name == CONTEXT:
            wants_context = True
        elif one.name.startswith("_"):
            if one.default is _MISSING:
                told = f"its parameter '{one.name}' has no default, and models do not see it"
                raise CannotBeTool(told)
        else:
            hint = hints.get(one.name, Any)
            parameters.append(_parameter(one, hint, said.parameters.get(one.name, "")))
    whole = len(parameters) == 1 and _is_whole(parameters[0], hints)
    returns, returned = _returns(function, hints)
    schema = _schema(parameters, whole)
    shown = tuple(parameters)
    return Signature(shown, whole, wants_context, said.whole, schema, returns, returned)


def core(function: Callee) -> Callee:
    """What is called in the end, behind `partial` and decorators."""
    while isinstance(function, functools.partial):
        function = function.func
    if not inspect.isroutine(function) and not inspect.isclass(function):
        function = type(function).__call__
    found: Callee = inspect.unwrap(function)
    return found


def _documented(function: Callee) -> str | None:
    return core(function).__doc__


def _hints(function: Callee) -> dict[str, Any]:
    try:
        return typing.get_type_hints(core(function), include_extras=True)
    except (NameError, AttributeError, TypeError, SyntaxError) as error:
        raise CannotBeTool(f"its annotations cannot be read: {error}") from error


def _given(function: Callee) -> Iterator[inspect.Parameter]:
    """The parameters a call can name; what a `partial` has set is gone."""
    try:
        found = inspect.signature(function).parameters.values()
    except (ValueError, TypeError) as error:
        raise CannotBeTool(f"it has no signature: {error}") from error
    gone = function.keywords if isinstance(function, functools.partial) else {}
    for one in found:
        if one.kind not in _NO_NAMES and one.name not in gone:
            yield one


def _parameter(one: inspect.Parameter, hint: Any, documented: str) -> Parameter:
    default = one.default
    if isinstance(default, FieldInfo):
        hint = Annotated[hint, default]
        default = _MISSING if default.is_required() else default.get_default()
    marks: Sequence[object] = getattr(hint, "__metadata__", ())
    fields = [mark for mark in marks if isinstance(mark, FieldInfo)]
    alias = next((mark.alias for mark in fields if mark.alias), None)
    if alias:
        hint = _without_alias(hint)
    words = next(filter(None, map(_words, (*fields, *marks))), documented)
    more: Json = {"description": words} if words else {}
    for allowed in map(_allowed, marks):
        if allowed:
            hint = Annotated[hint, AfterValidator(_one_of(allowed))]
            more["enum"] = [*allowed]
    positional = one.kind is inspect.Parameter.POSITIONAL_ONLY
    return Parameter(
        one.name, alias or one.name, _adapter(one.name, hint), default, positional, more
    )


def _without_alias(hint: Any) -> Any:
    """pydantic knows aliases of fields alone."""
    bare = typing.get_args(hint)[0]
    for mark in hint.__metadata__:
        for one in getattr(mark, "metadata", (mark,)):
            bare = Annotated[bare, one]
    return bare


def _allowed(mark: object) -> tuple[object, ...]:
    """What an object in `Annotated` lets through, if it has an `enum`."""
    found = None if isinstance(mark, FieldInfo) else getattr(mark, "enum", None)
    return tuple(found) if isinstance(found, list | tuple) else ()


def _adapter(name: str, hint: Any) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(hint)
    except (PydanticSchemaGenerationError, PydanticUserError, TypeError) as error:
        raise CannotBeTool(f"its parameter '{name}': {_short(error)}") from error


def _short(error: Exception) -> str:
    return str(error).splitlines()[0]


def _words(mark: object) -> str:
    """What something in `Annotated` says: a text, `Doc`, or any object with a description."""
    said = mark if isinstance(mark, str) else None
    for name in ("description", "documentation"):
        said = said or getattr(mark, name, None)
    return said if isinstance(said, str) else ""


def _one_of(allowed: tuple[object, ...]) -> Callable[[object], object]:
    words = ", ".join(map(repr, allowed))

    def check(value: object) -> object:
        if value not in allowed:
            raise PydanticCustomError("enum", "Input should be one of {words}", {"words": words})
        return value

    return check


def _is_whole(one: Parameter, hints: Mapping[str, Any]) -> bool:
    hint = hints.get(one.name)
    while getattr(hint, "__metadata__", None):
        hint = typing.get_args(hint)[0]
    if not one.required or not isinstance(hint, type):
        return False
    return is_dataclass(hint) or is_typeddict(hint) or issubclass(hint, BaseModel)


def _schema(parameters: Sequence[Parameter], whole: bool) -> Json:
    mode: Literal["validation"] = "validation"
    try:
        found, rest = TypeAdapter.json_schemas(
            [(one.name, mode, one.adapter) for one in parameters]
        )
    except PydanticUserError as error:
        raise CannotBeTool(f"one of its parameters has no JSON Schema: {_short(error)}") from error
    definitions = Definitions(rest.get("$defs", {}))
    each = [definitions.inlined(found[one.name, mode]) for one in parameters]
    if whole:
        top = each[0]
        name = top.get("$ref", "").rpartition("/")[2]
        top = definitions.left(top)[name] if name else top
        properties, required = top.get("properties", {}), top.get("required", [])
    else:
        shown = zip(parameters, each, strict=True)
        properties = {one.shown: _said(one, schema) for one, schema in shown}
        required = [one.shown for one in parameters if one.required]
    schema: Json = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    schema["additionalProperties"] = False
    if left := definitions.left(schema):
        schema["$defs"] = left
    return schema


def _said(one: Parameter, schema: Json) -> Json:
    """With its description and default."""
    said = {**schema, **one.more}
    if not one.required:
        try:
            said["default"] = to_jsonable_python(one.default)
        except (PydanticSerializationError, ValueError):
            said.pop("default", None)  # it is no JSON
    return said


def _returns(function: Callee, hints: Mapping[str, Any]) -> tuple[TypeAdapter[Any] | None, str]:
    hint = hints.get("return", Any)
    made = core(function)
    if hint is Any or inspect.isgeneratorfunction(made) or inspect.isasyncgenfunction(made):
        return None, ""
    if typing.get_origin(hint) in _ITERATORS:
        return None, ""
    try:
        return TypeAdapter(hint), inspect.formatannotation(hint)
    except (PydanticSchemaGenerationError, PydanticUserError, TypeError):
        return None, ""  # only JSON can be checked


_ITERATORS: tuple[object, ...] = tuple(
    typing.get_origin(one)
    for one in (
        typing.Iterator[int],
        typing.AsyncIterator[int],
        typing.Generator[int, None, None],
        typing.AsyncGenerator[int, None],
        typing.Awaitable[int],
        typing.Coroutine[int, int, int],
    )
)
