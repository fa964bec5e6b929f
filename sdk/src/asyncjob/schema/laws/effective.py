"""The policy in force is never against what the job itself says."""

from typing import Final

from asyncjob.models import RetryPolicy
from asyncjob.schema.laws.expressions import all_of
from asyncjob.schema.laws.law import Law, Write

_TIMES: Final = ("executionTimeoutSeconds", "leaseDurationSeconds")
_RETRY: Final = tuple(field.alias or name for name, field in RetryPolicy.model_fields.items())


def _obeyed(path: str, names: tuple[str, ...]) -> str:
    return all_of(f"!has({path}.{name}) || {path}.{name} == now.effective.{name}" for name in names)


TIMES: Final = Law(
    "effective.obeys-spec",
    f"Where the spec sets {' or '.join(_TIMES)}, effective says the same.",
    {Write.CLAIM: f"!has(now.effective) || ({_obeyed('spec', _TIMES)})"},
)
RETRY: Final = Law(
    "effective.obeys-retry-policy",
    "Where spec.retryPolicy sets a value, effective says the same.",
    {
        Write.CLAIM: "!has(now.effective) || !has(spec.retryPolicy)"
        f" || ({_obeyed('spec.retryPolicy', _RETRY)})",
    },
)
