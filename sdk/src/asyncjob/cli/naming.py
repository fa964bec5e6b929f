"""Names of things as people paste them: `asyncjob/report-42` is `report-42`. Pure."""

from collections.abc import Iterable

import click
from click.shell_completion import CompletionItem

from asyncjob.cli import offering


class NameParam(click.ParamType[str]):
    """A name, with or without its kind before it, as `kubectl get -o name` prints it."""

    name = "name"

    def __init__(self, source: offering.NameSource | None = offering.job_names) -> None:
        self._source = source

    def shell_complete(
        self,
        ctx: click.Context,
        param: click.Parameter,  # noqa: ARG002 - as click calls it
        incomplete: str,
    ) -> list[CompletionItem]:
        """Return the names there are that begin so."""
        return offering.complete_names(ctx, self._source, incomplete) if self._source else []

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the bare name."""
        bare = value.rpartition("/")[2].strip()
        if not bare or any(char.isspace() for char in bare):
            self.fail(f"{value!r} is no name of a job", param, ctx)
        return bare


def current_program() -> str:
    """Return how the running command was called, for hints: `asyncjob`, `kubectl asyncjob`."""
    return click.get_current_context().find_root().info_name or "asyncjob"


def unique(names: Iterable[str]) -> list[str]:
    """Return the names, each once, in their order."""
    return list(dict.fromkeys(names))
