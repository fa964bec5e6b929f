"""Says what is wrong with data, on one line."""

from pydantic import ValidationError


def describe_validation_error(error: ValidationError) -> str:
    """Return a schema error by field, on one line."""
    parts = (
        f"{'.'.join(str(step) for step in item['loc']) or 'payload'}: {item['msg']}"
        for item in error.errors(include_url=False, include_context=False, include_input=False)
    )
    return "; ".join(parts)
