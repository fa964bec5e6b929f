"""Tables of the fields of each resource, from the schema that the API server gets."""

from collections.abc import Iterator

from pydantic import BaseModel

from asyncjob.json_types import JsonObject, as_object, child, items, text, texts
from asyncjob.schema.structural import structural
from asyncjob_dev.reference.blocks import table

FieldRow = tuple[str, str, str, str]


def fields(model: type[BaseModel]) -> str:
    """Return the table of a model's fields, nested ones with their path."""
    schema = structural(model)
    properties = child(schema, "properties")
    own: JsonObject = {name: item for name, item in properties.items() if name != "metadata"}
    rows = list(_rows({**schema, "properties": own}, ""))
    return table(("Field", "Type", "Default", "Meaning"), rows)


def _rows(schema: JsonObject, prefix: str) -> Iterator[FieldRow]:
    required = texts(schema, "required")
    for name, value in child(schema, "properties").items():
        field = as_object(value)
        default = "required" if name in required else _default(field)
        yield f"`{prefix}{name}`", _field_type(field), default, text(field, "description")
        yield from _rows(field, f"{prefix}{name}.")
        yield from _rows(child(field, "items"), f"{prefix}{name}[].")


def _default(field: JsonObject) -> str:
    return f"`{field['default']}`" if "default" in field else ""


def _field_type(field: JsonObject) -> str:
    kind = text(field, "type", "any JSON")
    if "enum" in field:
        return ", ".join(str(item) for item in items(field, "enum"))
    if kind == "array":
        return f"list of {_field_type(child(field, 'items'))}, at most {field['maxItems']}"
    if "additionalProperties" in field:
        return f"map of {_field_type(child(field, 'additionalProperties'))}"
    if "minimum" in field and "maximum" in field:
        return f"{kind}, {field['minimum']} to {field['maximum']}"
    return text(field, "format", kind)
