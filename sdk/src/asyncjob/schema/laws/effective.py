"""The policy in force is never against what the job itself says."""

from typing import Final

from asyncjob.models import RetryPolicy
from asyncjob.schema.laws.expressions import cel_and
from asyncjob.schema.laws.law import Rule, StatusWrite

_SPEC_FIELDS: Final = ("executionTimeoutSeconds", "leaseDurationSeconds")
_RETRY_FIELDS: Final = tuple(
    field.alias or name for name, field in RetryPolicy.model_fields.items()
)


def _same_in_effective(path: str, names: tuple[str, ...]) -> str:
    return cel_and(
        f"!has({path}.{name}) || {path}.{name} == now.effective.{name}" for name in names
    )


EFFECTIVE_OBEYS_SPEC: Final = Rule(
    "effective.obeys-spec",
    f"Where the spec sets {' or '.join(_SPEC_FIELDS)}, effective says the same.",
    {StatusWrite.CLAIM: f"!has(now.effective) || ({_same_in_effective('spec', _SPEC_FIELDS)})"},
)
EFFECTIVE_OBEYS_RETRY_POLICY: Final = Rule(
    "effective.obeys-retry-policy",
    "Where spec.retryPolicy sets a value, effective says the same.",
    {
        StatusWrite.CLAIM: "!has(now.effective) || !has(spec.retryPolicy)"
        f" || ({_same_in_effective('spec.retryPolicy', _RETRY_FIELDS)})",
    },
)
