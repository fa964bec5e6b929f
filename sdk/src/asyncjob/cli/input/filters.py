"""The filters that select jobs, the same for all commands that take them."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import click
from click.shell_completion import CompletionItem
from pydantic import ValidationError

from asyncjob.cli.command_classes import SectionedOption
from asyncjob.cli.durations import DurationParam
from asyncjob.cli.input import resource_names
from asyncjob.cli.input.resource_names import NameParam
from asyncjob.lifecycle.phases import Phase
from asyncjob.models.field_errors import field_detail
from asyncjob.rest.listing import Selection

Callback = Callable[..., Any]

FILTER_SECTION: Final = "Filters (all given filters must match)"


class PhaseParam(click.ParamType[str]):
    """A phase in any case: `DeadLetter`, `deadletter`, `dead-letter`; or one of other words."""

    name = "phase"

    def __init__(self, *others: str) -> None:
        self._known = {word.lower(): word for word in (*others, *(one.value for one in Phase))}

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the phase as the API writes it."""
        found = self._known.get(value.lower().replace("-", ""))
        if found is None:
            self.fail(f"{value!r} is not one of {', '.join(self._known.values())}", param, ctx)
        return found

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002 - as click calls it
        param: click.Parameter,  # noqa: ARG002 - as click calls it
        incomplete: str,
    ) -> list[CompletionItem]:
        """Return the phases that begin so."""
        words = self._known.items()
        return [CompletionItem(word) for low, word in words if low.startswith(incomplete.lower())]

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # noqa: ARG002 - as click calls it
        """Return what stands for the value in the help."""
        return "PHASE"


_TEXT_FIELDS: Final = ("type", "queue", "label", "parent", "cron_job", "reason", "text")
_FIELDS: Final = (*_TEXT_FIELDS, "older_than_seconds", "newer_than_seconds")


def _option(*flags: str, **details: Any) -> Callable[[Callback], Callback]:
    return click.option(*flags, cls=SectionedOption, section=FILTER_SECTION, **details)


_PHASE_OPTION: Final = _option(
    "--phase", multiple=True, type=PhaseParam(), help="Such as DeadLetter; repeatable."
)
_OPTIONS: Final = (
    _option("--type", metavar="TYPE", help="Type of the job."),
    _option(
        "--queue",
        "-q",
        metavar="QUEUE",
        help="Queue.",
        shell_complete=resource_names.complete_queue_names,
    ),
    _option("--selector", "-l", "label", metavar="LABELS", help="As kubectl: team=mail,tier!=free"),
    _option("--reason", metavar="REASON", help="Reason, such as RetriesExhausted."),
    _option("--parent", type=NameParam(), metavar="JOB", help="Job that submitted it."),
    _option(
        "--cron-job",
        type=NameParam(resource_names.cron_job_names),
        metavar="NAME",
        help="Cron job that created it.",
    ),
    _option("--text", metavar="TEXT", help="Text in name, type, message or error; ignores case."),
    _option(
        "--older-than",
        "older_than_seconds",
        type=DurationParam(),
        help="Created at least this long ago: 2h",
    ),
    _option(
        "--newer-than",
        "newer_than_seconds",
        type=DurationParam(),
        help="Created at most this long ago: 7d",
    ),
)


def combine_options(
    options: Sequence[Callable[[Callback], Callback]],
) -> Callable[[Callback], Callback]:
    """Return a decorator that adds the options, in this order."""

    def decorate(function: Callback) -> Callback:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def with_selection(*, phases: bool = True) -> Callable[[Callback], Callback]:
    """Return a decorator that adds the filters; the command is given a `selection`."""
    options = (_PHASE_OPTION, *_OPTIONS) if phases else _OPTIONS

    def decorate(function: Callback) -> Callback:
        @functools.wraps(function)
        def call(phase: Sequence[str] = (), **given: Any) -> Any:
            chosen = {name: given.pop(name) for name in _FIELDS}
            return function(selection=build_selection(phase, chosen), **given)

        return combine_options(options)(call)

    return decorate


def build_selection(phases: Sequence[str], chosen: dict[str, Any]) -> Selection:
    """Return the selection; raises UsageError that names the filter at fault."""
    given = {name: value for name, value in chosen.items() if value is not None}
    if phases:
        given["phase"] = list(phases)
    try:
        return Selection.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = str(first["loc"][0] if first["loc"] else "filters").replace("_", "-")
        raise click.UsageError(f"--{where}: {field_detail(first)}") from error


def selects_all(chosen: Selection) -> bool:
    """Return whether nothing is filtered out."""
    return not chosen.model_dump(exclude_none=True)
