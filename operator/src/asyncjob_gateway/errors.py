"""What the gateway itself refuses. Each carries the kind of problem that its caller is told."""

from collections.abc import Mapping, Sequence

from asyncjob.errors import AsyncJobError, ConfigError
from asyncjob.rest.problem import FieldProblem
from asyncjob_gateway.problem_types import ProblemType


class UnsafeSettingsError(ConfigError):
    """These settings would open the gateway to everybody who can reach it."""

    code = "unsafe-settings"


class RefusedError(AsyncJobError):
    """The request is not done, for a reason that its sender is told.

    `errors` names fields that are at fault, `job_id` an existing job that stands in the way,
    `retry_after` (seconds) when to try again.
    """

    def __init__(
        self,
        kind: ProblemType,
        detail: str = "",
        *,
        job_id: str | None = None,
        errors: Sequence[FieldProblem] = (),
        retry_after: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail or kind.meaning)
        self.kind = kind
        self.code = kind.slug
        self.detail = detail or kind.meaning
        self.job_id = job_id
        self.errors = tuple(errors)
        self.retry_after = retry_after
        self.headers = dict(headers or {})
