"""A submission has what a job's spec takes at creation; a field has the same bounds and words."""

from typing import Any

import pytest
from pydantic import BaseModel

from asyncjob.models import AsyncJobSpec
from asyncjob.rest.submission import Submission

LATER = {"cancel", "cancel_cascade", "redrive", "rerun", "signals"}
"""Control fields of a job that exists."""

OPERATORS = {"rerun_of"}
"""Set by the operator, on the jobs that it creates."""

METADATA = {"name", "labels"}
SHARED = sorted(set(AsyncJobSpec.model_fields) - LATER - OPERATORS)


def test_a_submission_has_the_fields_of_a_spec_and_of_the_jobs_metadata() -> None:
    assert set(Submission.model_fields) == {*SHARED, *METADATA}


def described(model: type[BaseModel], name: str) -> dict[str, Any]:
    """Return what is demanded and said of a field, and what it is by default."""
    found: dict[str, Any] = model.model_json_schema()["properties"][model.model_fields[name].alias]
    return found


@pytest.mark.parametrize("name", SHARED)
def test_a_field_takes_and_means_the_same_in_both(name: str) -> None:
    assert described(Submission, name) == described(AsyncJobSpec, name)
