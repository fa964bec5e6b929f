"""The way from a pydantic model to a structural schema, construct by construct."""

from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from asyncjob.models.base import TIMESTAMP_PATTERN, FreeJson, Model, Timestamp
from asyncjob.schema.structural import SchemaError, structural

Name = Annotated[str, Field(max_length=9)]


class Colour(StrEnum):
    """A colour."""

    RED = "Red"
    BLUE = "Blue"


class Inner(Model):
    """What is inside."""

    name: Name
    """Its name."""


class Recursive(Model):
    """Contains itself."""

    again: "Recursive | None" = None


def schema_of(annotation: Any, default: Any = ...) -> dict[str, Any]:
    """Return the schema of a field `spec.field` of this type."""
    spec = type("Spec", (Model,), {"__annotations__": {"field": annotation}, "field": default})
    root = type("Root", (Model,), {"__annotations__": {"spec": spec}})
    found: Any = structural(root)
    field: dict[str, Any] = found["properties"]["spec"]["properties"]["field"]
    return field


def test_a_string_keeps_its_bounds_and_pattern() -> None:
    annotation = Annotated[str, Field(min_length=1, max_length=9, pattern="^a+$")]
    assert schema_of(annotation) == {
        "type": "string",
        "pattern": "^a+$",
        "minLength": 1,
        "maxLength": 9,
    }


def test_numbers_keep_their_bounds() -> None:
    assert schema_of(Annotated[int, Field(ge=1, le=2)]) == {
        "type": "integer",
        "minimum": 1,
        "maximum": 2,
    }
    assert schema_of(Annotated[float, Field(ge=0)]) == {"type": "number", "minimum": 0}


def test_an_optional_field_is_plain_without_null_and_without_default() -> None:
    assert schema_of(bool | None, None) == {"type": "boolean"}


def test_a_real_default_is_kept() -> None:
    assert schema_of(bool, default=False) == {"type": "boolean", "default": False}


def test_an_enum_is_inlined_with_its_default() -> None:
    found = schema_of(Colour, Colour.RED)
    assert found["enum"] == ["Red", "Blue"]
    assert found["default"] == "Red"
    assert "$ref" not in found


def test_a_literal_is_an_enum_of_one() -> None:
    assert schema_of(Literal["a"]) == {"type": "string", "enum": ["a"]}


def test_a_time_is_a_bounded_string_with_a_format() -> None:
    plain = {"type": "string", "format": "date-time", "maxLength": 40}
    assert schema_of(Timestamp) == {**plain, "pattern": TIMESTAMP_PATTERN}


def test_free_json_preserves_everything_null_included() -> None:
    assert schema_of(FreeJson | None, None) == {
        "x-kubernetes-preserve-unknown-fields": True,
        "nullable": True,
    }


def test_a_model_is_inlined_as_an_atomic_object_with_its_docstrings() -> None:
    assert schema_of(Inner) == {
        "type": "object",
        "description": "What is inside.",
        "required": ["name"],
        "properties": {"name": {"type": "string", "description": "Its name.", "maxLength": 9}},
        "x-kubernetes-map-type": "atomic",
    }


def test_a_list_is_atomic_and_bounded() -> None:
    found = schema_of(Annotated[list[Inner], Field(max_length=3)])
    assert found["maxItems"] == 3
    assert found["x-kubernetes-list-type"] == "atomic"
    assert found["items"]["properties"]["name"]["maxLength"] == 9


def test_a_map_is_atomic_and_bounded() -> None:
    assert schema_of(Annotated[dict[str, Name], Field(max_length=3)]) == {
        "type": "object",
        "maxProperties": 3,
        "additionalProperties": {"type": "string", "maxLength": 9},
        "x-kubernetes-map-type": "atomic",
    }


def test_spec_itself_is_granular_so_that_a_control_field_can_be_applied_alone() -> None:
    root = type("Root", (Model,), {"__annotations__": {"spec": Inner}})
    found: Any = structural(root)
    assert "x-kubernetes-map-type" not in found["properties"]["spec"]


def test_metadata_is_left_to_the_api_server_and_kind_and_version_too() -> None:
    fields = {"metadata": Inner, "kind": Literal["A"], "api_version": Literal["a/v1"]}
    root = type("Root", (Model,), {"__annotations__": fields})
    assert structural(root)["properties"] == {"metadata": {"type": "object"}}


def test_titles_are_dropped_everywhere() -> None:
    assert "title" not in schema_of(Inner)


@pytest.mark.parametrize(
    "annotation",
    [
        str,
        list[Name],
        dict[str, Name],
        Annotated[list[str], Field(max_length=3)],
        Annotated[dict[str, str], Field(max_length=3)],
    ],
    ids=str,
)
def test_an_unbounded_string_list_or_map_is_refused_by_name(annotation: Any) -> None:
    with pytest.raises(SchemaError, match=r"\.spec\.field.*: needs max"):
        schema_of(annotation)


def test_a_union_is_refused_by_name() -> None:
    with pytest.raises(SchemaError, match=r"\.spec\.field: a union of 2 types"):
        schema_of(int | bool)


def test_any_type_at_all_is_refused_by_name() -> None:
    with pytest.raises(SchemaError, match=r"\.spec\.field: type None is not structural"):
        schema_of(Any)


def test_a_map_of_anything_is_refused_by_name() -> None:
    with pytest.raises(SchemaError, match=r"\.spec\.field: a map needs a schema"):
        schema_of(Annotated[dict[str, Any], Field(max_length=3)])


def test_a_construct_nobody_taught_it_is_refused_by_name() -> None:
    with pytest.raises(SchemaError, match=r"\.spec\.field: cannot express multipleOf"):
        schema_of(Annotated[int, Field(multiple_of=2)])


def test_a_model_that_contains_itself_is_refused_by_name() -> None:
    with pytest.raises(SchemaError, match=r"Recursive contains itself"):
        schema_of(Recursive)


def test_rules_stand_at_their_class_and_at_their_field() -> None:
    root = type("Root", (Model,), {"__annotations__": {"spec": Inner}})
    rules: dict[str, Any] = {"Inner": ({"rule": "a"},), "Inner.name": ({"rule": "b"},)}
    found: Any = structural(root, rules)
    spec = found["properties"]["spec"]
    assert spec["x-kubernetes-validations"] == [{"rule": "a"}]
    assert spec["properties"]["name"]["x-kubernetes-validations"] == [{"rule": "b"}]
