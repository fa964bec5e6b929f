"""A submission has what a job's spec takes at creation, each field within the same bounds."""

from typing import Any

import pytest
from pydantic import BaseModel

from asyncjob.models import AsyncJobSpec
from asyncjob.rest.submission import Submission

LATER = {"cancel", "cancel_cascade", "redrive", "rerun"}
"""Wishes about a job that exists."""

OPERATORS = {"rerun_of"}
"""Set by the operator, on the jobs that it creates."""

METADATA = {"name", "labels"}
WORDS = ("title", "description")
SHARED = sorted(set(AsyncJobSpec.model_fields) - LATER - OPERATORS)


def test_a_submission_has_the_fields_of_a_spec_and_of_the_jobs_metadata() -> None:
    assert set(Submission.model_fields) == {*SHARED, *METADATA}


def bounds(model: type[BaseModel], name: str) -> dict[str, Any]:
    """Return what is demanded of a field, and what it is by default, but for the words about it."""
    properties = model.model_json_schema()["properties"]
    found: dict[str, Any] = properties[model.model_fields[name].alias]
    return {key: value for key, value in found.items() if key not in WORDS}


@pytest.mark.parametrize("name", SHARED)
def test_a_field_takes_the_same_in_both(name: str) -> None:
    assert bounds(Submission, name) == bounds(AsyncJobSpec, name)
