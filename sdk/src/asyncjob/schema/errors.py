"""What can go wrong while manifests are generated."""

from asyncjob.errors import AsyncJobError


class SchemaError(AsyncJobError):
    """A model cannot be expressed as a structural schema."""
