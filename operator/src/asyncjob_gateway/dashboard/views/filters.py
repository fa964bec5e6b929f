"""The filters of a list: from an address to a selection and back. Wrong ones are named."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from pydantic import ValidationError
from starlette.datastructures import QueryParams

from asyncjob.lifecycle.phases import Phase
from asyncjob.models.field_errors import field_detail
from asyncjob.rest.listing import Selection
from asyncjob_gateway.cache.listing import parse_label_selector
from asyncjob_gateway.dashboard.formatting import parse_duration
from asyncjob_gateway.dashboard.links import Query
from asyncjob_gateway.errors import RefusedError

TEXT_FILTERS: Final = ("text", "type", "queue", "label", "reason", "parent", "cronJob")
AGE_FILTERS: Final = {"newer": "newer_than_seconds", "older": "older_than_seconds"}

_FIELD_OF_FILTER: Final = {"cronJob": "cron_job"}
_DURATION_EXPECTED: Final = "a duration such as 90s, 30m, 2h or 1d"


@dataclass(frozen=True, slots=True)
class Filters:
    """What was asked for, as it was written, and what it means; None where something is wrong."""

    given: dict[str, str]
    phases: tuple[str, ...]
    selection: Selection | None
    errors: dict[str, str] = field(default_factory=dict)

    @property
    def any(self) -> bool:
        """Whether anything is filtered by, the phase included."""
        return bool(self.given or self.phases)

    @property
    def more(self) -> bool:
        """Whether one of the rarer filters is set."""
        return any(name not in {"text", "type", "queue"} for name in self.given)

    @property
    def query(self) -> Query:
        """The same as a part of an address."""
        return {**self.given, "phase": self.phases}


def read_filters(query: QueryParams, fixed: Phase | None = None) -> Filters:
    """Read them; `fixed` is the phase that the page is about, whatever is asked for."""
    names = (*TEXT_FILTERS, *AGE_FILTERS)
    given = {name: query[name].strip() for name in names if query.get(name, "").strip()}
    phases = () if fixed else tuple(dict.fromkeys(query.getlist("phase")))
    return parse_filters(given, (fixed.value,) if fixed else phases, phases)


def parse_filters(given: dict[str, str], meant: Sequence[str], phases: tuple[str, ...]) -> Filters:
    """Return what the filters mean; `phases` are those that the address names."""
    fields: dict[str, object] = {
        _FIELD_OF_FILTER.get(name, name): text
        for name, text in given.items()
        if name in TEXT_FILTERS
    }
    errors = {}
    for name, into in AGE_FILTERS.items():
        if name in given:
            fields[into] = seconds = parse_duration(given[name])
            if seconds is None:
                errors[name] = _DURATION_EXPECTED
    if "label" in given:
        errors.update(_label_errors(given["label"]))
    if meant:
        fields["phase"] = list(meant)
    selection = None if errors else _validate_selection(fields, errors)
    return Filters(given, phases, selection, errors)


def _label_errors(text: str) -> dict[str, str]:
    try:
        parse_label_selector(text, "label")
    except RefusedError as error:
        return {"label": error.detail}
    return {}


def _validate_selection(fields: dict[str, object], errors: dict[str, str]) -> Selection | None:
    try:
        return Selection.model_validate(fields)
    except ValidationError as error:
        backwards = {
            **{into: name for name, into in _FIELD_OF_FILTER.items()},
            **_filter_of_age_field(),
        }
        for one in error.errors(include_url=False, include_input=False):
            name = str(one["loc"][0])
            short = _to_snake(name)
            errors[backwards.get(short, name)] = field_detail(one)
        return None


def _filter_of_age_field() -> dict[str, str]:
    return {into: name for name, into in AGE_FILTERS.items()}


def _to_snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
