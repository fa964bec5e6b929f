"""Checks that data has exactly the types of a request's schema; models alone are more lenient.

A model reads `"5"` as 5 and `"no"` as false, and ignores a misspelt field of a nested object, so
that what the caller meant is guessed or lost. Here the schema is taken literally, the same that the
OpenAPI document shows. `5.0` is a whole number, as in JSON and JSON Schema.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any, Final

from pydantic import BaseModel

from asyncjob.rest.problem import FieldProblem

MAX_PROBLEMS: Final = 20
"""Most fields that are told of."""

_MAX_VALUES: Final = 10_000
"""Values that are looked at; of a longer list the model itself says that it is too long."""

_TYPE_NAMES: Final = {"integer": "a whole number", "number": "a number", "boolean": "true or false"}
"""What a model would read out of something else, and how it is called."""

_Schema = Mapping[str, Any]
_Path = tuple[str | int, ...]


def schema_mismatches(model: type[BaseModel], data: object) -> list[FieldProblem]:
    """Return what of the data is not as the model's schema has it, field by field.

    What a model refuses by itself is left to it.
    """
    schema = _schema_of(model)
    seen = islice(_walk(schema, schema.get("$defs", {}), data, ()), _MAX_VALUES)
    return list(islice((one for one in seen if one is not None), MAX_PROBLEMS))


@cache
def _schema_of(model: type[BaseModel]) -> _Schema:
    return model.model_json_schema(by_alias=True, mode="validation")


def _walk(
    schema: _Schema, known: _Schema, value: object, path: _Path
) -> Iterator[FieldProblem | None]:
    """Yield a problem, or None, for each value that the schema says something of."""
    choices = [_resolve_reference(one, known) for one in schema.get("anyOf", (schema,))]
    if not all("type" in one for one in choices):
        return  # any JSON
    fitting = [one for one in choices if _fits(one["type"], value)]
    yield None if fitting else _type_problem([one["type"] for one in choices], value, path)
    for one in fitting:
        if isinstance(value, dict):
            yield from _walk_object(one, known, value, path)
        elif isinstance(value, list) and "items" in one:
            for index, item in enumerate(value):
                yield from _walk(one["items"], known, item, (*path, index))


def _walk_object(
    schema: _Schema, known: _Schema, value: Mapping[str, object], path: _Path
) -> Iterator[FieldProblem | None]:
    fields: _Schema = schema.get("properties", {})
    others = schema.get("additionalProperties")
    for name, item in value.items():
        inner = fields.get(name, others)
        if isinstance(inner, Mapping):
            yield from _walk(inner, known, item, (*path, name))
        elif fields and inner is not True:
            yield FieldProblem(field=_field_name((*path, name)), detail="Unknown field")


def _resolve_reference(schema: _Schema, known: _Schema) -> _Schema:
    reference = schema.get("$ref")
    if reference is None:
        return schema
    found: _Schema = known.get(reference.rpartition("/")[2], {})
    return found


def _fits(type_name: str, value: object) -> bool:
    if isinstance(value, bool) or value is None:
        return type_name == ("null" if value is None else "boolean")
    if isinstance(value, float):
        return type_name == "number" or (type_name == "integer" and value.is_integer())
    if isinstance(value, int):
        return type_name in {"integer", "number"}
    types = {"string": str, "object": dict, "array": list}
    return type_name in types and isinstance(value, types[type_name])


def _type_problem(types: Sequence[str], value: object, path: _Path) -> FieldProblem | None:
    wanted = [_TYPE_NAMES[kind] for kind in types if kind in _TYPE_NAMES]
    if not wanted or not isinstance(value, str | int | float):
        return None
    given = "text" if isinstance(value, str) else "true or false"
    given = given if isinstance(value, str | bool) else "a number"
    return FieldProblem(field=_field_name(path), detail=f"It should be {wanted[0]}, not {given}")


def _field_name(path: _Path) -> str:
    return ".".join(map(str, path)) or "body"
