"""The filters that select arrays."""

import functools
from collections.abc import Sequence
from typing import Any, Final

import click
from click.shell_completion import CompletionItem
from pydantic import ValidationError

from asyncjob.cli.command_classes import SectionedOption
from asyncjob.cli.input import resource_names
from asyncjob.cli.input.filters import FILTER_SECTION, Callback, combine_options
from asyncjob.lifecycle.arrays.phases import ArrayPhase
from asyncjob.models.field_errors import field_detail
from asyncjob.rest.arrays import ArraySelection


class ArrayPhaseParam(click.ParamType[str]):
    """A phase of an array, in any case."""

    name = "phase"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the phase as the API writes it."""
        known = {phase.lower(): phase.value for phase in ArrayPhase}
        found = known.get(value.lower())
        if found is None:
            self.fail(f"{value!r} is not one of {', '.join(known.values())}", param, ctx)
        return found

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002 - as click calls it
        param: click.Parameter,  # noqa: ARG002 - as click calls it
        incomplete: str,
    ) -> list[CompletionItem]:
        """Return the phases that begin so."""
        begun = incomplete.lower()
        return [CompletionItem(one.value) for one in ArrayPhase if one.lower().startswith(begun)]

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # noqa: ARG002 - as click calls it
        """Return what stands for the value in the help."""
        return "PHASE"


def _option(*flags: str, **details: Any) -> Any:
    return click.option(*flags, cls=SectionedOption, section=FILTER_SECTION, **details)


_OPTIONS: Final = (
    _option("--phase", multiple=True, type=ArrayPhaseParam(), help="Such as Failed; repeatable."),
    _option("--type", "kind", metavar="TYPE", help="Type of the item handler."),
    _option(
        "--queue",
        "-q",
        metavar="QUEUE",
        help="Queue.",
        shell_complete=resource_names.complete_queue_names,
    ),
    _option("--selector", "-l", "label", metavar="LABELS", help="As kubectl: team=mail,tier!=free"),
)


def with_array_selection(function: Callback) -> Callback:
    """Add the filters to a command, which is given a `selection`."""

    @functools.wraps(function)
    def call(
        *,
        phase: Sequence[str],
        kind: str | None,
        queue: str | None,
        label: str | None,
        **given: Any,
    ) -> Any:
        chosen = {"phase": list(phase) or None, "type": kind, "queue": queue, "label": label}
        return function(selection=_build_selection(chosen), **given)

    return combine_options(_OPTIONS)(call)


def _build_selection(chosen: dict[str, Any]) -> ArraySelection:
    given = {name: value for name, value in chosen.items() if value is not None}
    try:
        return ArraySelection.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = {"label": "selector"}.get(name := str(first["loc"][0]), name)
        raise click.UsageError(f"--{where}: {field_detail(first)}") from error
