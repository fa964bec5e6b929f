"""`explain`: what a code means that a message, a status or an exit had. Needs no cluster."""

from typing import Any

import click
from click.shell_completion import CompletionItem

from asyncjob.cli.command_classes import SectionedCommand
from asyncjob.cli.input.resource_names import current_program
from asyncjob.cli.output.printer import OutputFormat, Printer, with_printer


class CodeParam(click.ParamType[str]):
    """A code of the catalogue."""

    name = "code"

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002 - as click calls it
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """Return the codes that begin so, in any case, with what they mean."""
        from asyncjob.cli.output.explanation import summary
        from asyncjob.explanations.catalog import catalog

        return [
            CompletionItem(one.code, help=summary(one))
            for one in catalog()
            if one.code.lower().startswith(incomplete.lower())
        ]


@click.command(cls=SectionedCommand)
@click.argument("code", type=CodeParam(), required=False)
@with_printer(OutputFormat.TABLE, OutputFormat.JSON, OutputFormat.YAML, OutputFormat.NAME)
def explain(*, code: str | None, printer: Printer) -> None:
    """Explain a code: a rule, a reason, a problem type, an exit code or an error.

    Says what it means, why it exists and what to do, with an example. Without CODE lists all. Works
    without a cluster. Codes are taken as messages have them, and in any case.

    \b
      asyncjob explain history.grows
      asyncjob explain CrashBudgetExhausted
      asyncjob explain /problems/key-reused
      asyncjob explain 4
    """  # noqa: D301 - click takes a real backspace for "do not wrap"
    from asyncjob.explanations.catalog import catalog
    from asyncjob.explanations.catalog import explain as look_up

    if code is None:
        _print_all(catalog(), printer)
        return
    found = look_up(code)
    if not found:
        raise click.UsageError(_unknown(code))
    _print_each(found, printer)


def _unknown(code: str) -> str:
    from asyncjob.explanations.catalog import similar_codes

    near = similar_codes(code)
    meant = (
        f"did you mean {' or '.join(near)}?" if near else f"{current_program()} explain lists all"
    )
    return f"unknown code {code!r}; {meant}"


def _print_all(entries: Any, printer: Printer) -> None:
    from asyncjob.cli.output.explanation import summary_tables, to_object

    if printer.format is OutputFormat.NAME:
        printer.names(one.code for one in entries)
    elif not printer.human_readable:
        printer.data({"items": [to_object(one) for one in entries]})
    else:
        for number, (_, table) in enumerate(summary_tables(entries)):
            if number:
                printer.line()
            printer.table(table)


def _print_each(entries: Any, printer: Printer) -> None:
    from asyncjob.cli.output.explanation import explanation_lines, to_object

    if printer.format is OutputFormat.NAME:
        printer.names(one.code for one in entries)
    elif not printer.human_readable:
        shown = [to_object(one) for one in entries]
        printer.data(shown[0] if len(shown) == 1 else {"items": shown})
    else:
        for number, entry in enumerate(entries):
            if number:
                printer.line()
            for line in explanation_lines(entry, colour=printer.colour, width=printer.width):
                printer.line(line)
