"""Values made from the schemas of `crds/`: resources that nobody would think of writing. Pure."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

import yaml

from asyncjob_simulation.apiserver.installation import ROOT
from asyncjob_simulation.dice import Dice

Object = dict[str, Any]

_OPTIONAL_CHANCE: Final = 0.4
_ITEMS: Final = 2


@cache
def spec_schema(plural: str) -> Object:
    """Return the schema of `spec` of a resource."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    with (ROOT / "crds" / f"{plural}.yaml").open(encoding="utf-8") as file:
        for manifest in yaml.load_all(file, Loader=loader):  # safe
            if manifest["kind"] == "CustomResourceDefinition":
                schema = manifest["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
                spec: Object = schema["properties"]["spec"]
                return spec
    raise LookupError(plural)


def made_value(
    schema: Mapping[str, Any], dice: Dice, name: str, chosen: Mapping[str, Sequence[Any]]
) -> Any:
    """Return a value that a schema allows; `name` is that of the question, a path of fields.

    `chosen` holds the values of fields, by their last name, that a schema does not tell: texts of
    a pattern, and numbers that would take longer than anybody looks.
    """
    field = name.rsplit(".", maxsplit=1)[-1]
    options = chosen.get(field) or schema.get("enum")
    if options:
        return dice.choice(name, options)
    match schema.get("type"):
        case "object":
            return _made_object(schema, dice, name, chosen)
        case "array":
            count = dice.number(f"{name} items", 0, min(_ITEMS, schema.get("maxItems", _ITEMS)))
            return [
                made_value(schema["items"], dice, f"{name}.{index}", chosen)
                for index in range(count)
            ]
        case "integer" | "number":
            return dice.choice(name, _numbers(schema))
        case "boolean":
            return dice.happens(name, 0.5)
        case _:
            return "text"


def _made_object(
    schema: Mapping[str, Any], dice: Dice, name: str, chosen: Mapping[str, Sequence[Any]]
) -> Object:
    required = schema.get("required", ())
    return {
        field: made_value(one, dice, f"{name}.{field}", chosen)
        for field, one in schema.get("properties", {}).items()
        if field in required or dice.happens(f"{name}.{field} given", _OPTIONAL_CHANCE)
    }


def _numbers(schema: Mapping[str, Any]) -> list[int]:
    """Return the ends of what is allowed, and a few small ones in between."""
    low, high = schema.get("minimum", 0), schema.get("maximum", 2**31 - 1)
    return [low, high, *(number for number in (1, 2, 3, 5) if low < number < high)]
