"""Metadata of an object, as far as this project reads or writes it."""

from pydantic import Field

from asyncjob.models.base import Model


class ObjectMeta(Model):
    """Standard object metadata; what is not listed here is left to the API server."""

    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
