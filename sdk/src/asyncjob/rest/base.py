"""Base classes of requests and responses: camelCase outside, frozen, docstrings as descriptions."""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class ResponseModel(BaseModel):
    """What the gateway sends. A client ignores fields that it is too old to know."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        use_attribute_docstrings=True,
        frozen=True,
        extra="ignore",
    )


class RequestModel(BaseModel):
    """What the gateway is sent. A field that nobody knows is refused, by name."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        use_attribute_docstrings=True,
        frozen=True,
        extra="forbid",
    )
