"""What payloads and results of the built-in handlers share."""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class BuiltInModel(BaseModel):
    """camelCase on the wire; an unknown field is a mistake of the author, and told."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        use_attribute_docstrings=True,
        frozen=True,
        extra="forbid",
    )
