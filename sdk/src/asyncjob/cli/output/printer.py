"""Prints results as a table, JSON, YAML or names.

Colours and progress bars appear on terminals only. Holds the options `-o` and `--no-color`.
"""

import functools
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from shutil import get_terminal_size
from typing import Any, Protocol, TypeVar

import click

from asyncjob.cli.command_classes import OUTPUT_SECTION, SectionedOption
from asyncjob.cli.output.tables import Table, one_line, render_lines
from asyncjob.errors import explained
from asyncjob.json_types import Json

Callback = Callable[..., Any]


class Serializable(Protocol):
    """An answer of a client; any model of `asyncjob.rest` is one."""

    def model_dump(self, *, mode: str, by_alias: bool, exclude_none: bool) -> dict[str, Any]:
        """Return it as plain data."""


T = TypeVar("T", bound=Serializable)


class OutputFormat(StrEnum):
    """Values of `-o`."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


_CONTROL_CHARACTERS = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What json.dumps leaves as it is: C1 controls, directions of writing, lone surrogates."""

HUMAN_FORMATS = frozenset({OutputFormat.TABLE, OutputFormat.WIDE})


@dataclass(frozen=True, slots=True)
class Printer:
    """Where output goes and how."""

    format: OutputFormat = OutputFormat.TABLE
    colour: bool = False
    terminal: bool = False
    """Whether a person sees stdout."""

    width: int | None = None
    """Columns of the terminal; None: not cut."""

    @property
    def human_readable(self) -> bool:
        """Return whether what is printed is to be read, not processed."""
        return self.format in HUMAN_FORMATS

    @property
    def wide(self) -> bool:
        """Return whether to show more columns."""
        return self.format is OutputFormat.WIDE

    def table(self, table: Table) -> None:
        """Print a table."""
        for line in render_lines(table, colour=self.colour, width=self.width):
            self.line(line)

    def line(self, text: str = "") -> None:
        """Print a line."""
        click.echo(text, color=self.colour)

    def data(self, value: Json) -> None:
        """Print an object as JSON or YAML."""
        if self.format is OutputFormat.YAML:
            click.echo(to_yaml(value), nl=False)
        else:
            click.echo(to_json(value))

    def names(self, names: Iterable[str]) -> None:
        """Print names, one in a line."""
        for name in names:
            click.echo(name)

    def objects(self, objects: Sequence[Serializable], *, one: bool = False) -> None:
        """Print answers as JSON or YAML, or their names; several as `items`."""
        dumped = [dump(answer) for answer in objects]
        if self.format is OutputFormat.NAME:
            self.names(str(thing.get("id") or thing["name"]) for thing in dumped)
        elif not one:
            self.data({"items": dumped})
        elif dumped:
            self.data(dumped[0])

    def outcomes(self, objects: Sequence[T], sentence: Callable[[T], str]) -> None:
        """Print what became of each object, in a sentence or as the object itself."""
        if self.human_readable:
            for one in objects:
                self.line(sentence(one))
        elif objects:
            self.objects(objects, one=len(objects) == 1)

    def listing(
        self,
        objects: Sequence[T],
        table: Callable[[Sequence[T]], Table],
        *,
        otherwise: str,
        one: bool = False,
    ) -> None:
        """Print objects as a table or as themselves; to people say `otherwise` if none."""
        if not self.human_readable:
            self.objects(objects, one=one)
        elif objects:
            self.table(table(objects))
        else:
            note(otherwise)


def dump(obj: Serializable) -> dict[str, Json]:
    """Return an answer as JSON, without what is not set."""
    return obj.model_dump(mode="json", by_alias=True, exclude_none=True)


def to_json(value: Json) -> str:
    """Return JSON as people and jq like it."""
    return _escape_control_characters(json.dumps(value, indent=2, ensure_ascii=False))


def to_json_line(value: Json) -> str:
    """Return JSON in one line."""
    return _escape_control_characters(json.dumps(value, ensure_ascii=False))


def _escape_control_characters(text: str) -> str:
    """Return JSON with the characters escaped that would steer a terminal, or forge its lines."""
    return _CONTROL_CHARACTERS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def to_yaml(value: Json) -> str:
    """Return YAML in the order of the fields, without anchors."""
    import yaml

    dumper = type("_Dumper", (yaml.SafeDumper,), {"ignore_aliases": lambda *_: True})
    text: str = yaml.dump(value, Dumper=dumper, sort_keys=False, allow_unicode=True, width=100)
    return text


def note(text: str) -> None:
    """Say something about what is done, beside the output."""
    click.echo(text, err=True)


class CommandFailedError(click.ClickException):
    """Ends a command: a line for each mistake, and a last one that says what was not done."""

    last_line = ""

    code = "unexpected"
    """What `asyncjob explain` knows it by."""

    def show(self, file: Any = None) -> None:  # noqa: ARG002 - as click calls it
        """Say so, and at the end what explains it."""
        lines = [f"error: {one_line(line)}" for line in self.message.splitlines()]
        *most, last = [*lines, self.last_line] if self.last_line else lines
        for line in (*most, explained(last, self.code)):
            note(line)


def use_colour(environ: Mapping[str, str], *, terminal: bool, disabled: bool) -> bool:
    """Return whether to colour: on terminals, unless refused by option, NO_COLOR or TERM."""
    quiet = bool(environ.get("NO_COLOR")) or environ.get("TERM") == "dumb"
    return terminal and not disabled and not quiet


def with_printer(*formats: OutputFormat) -> Callable[[Callback], Callback]:
    """Return a decorator that adds `-o` with these formats; the command is given a `printer`."""
    choices = [one.value for one in formats or tuple(OutputFormat)]

    def decorate(function: Callback) -> Callback:
        @functools.wraps(function)
        def call(*, output: str, no_color: bool, **options: Any) -> Any:
            return function(printer=_make_printer(output, no_color=no_color), **options)

        return _output_option(choices)(_no_color_option()(call))

    return decorate


def _output_option(choices: list[str]) -> Callable[[Callback], Callback]:
    return click.option(
        "--output",
        "-o",
        cls=SectionedOption,
        section=OUTPUT_SECTION,
        type=click.Choice(choices),
        default=choices[0],
        show_default=True,
        help="How to show it; json and yaml are for programs and keep their fields.",
    )


def _no_color_option() -> Callable[[Callback], Callback]:
    return click.option(
        "--no-color",
        cls=SectionedOption,
        section=OUTPUT_SECTION,
        is_flag=True,
        help="No colours; there are none outside terminals, nor with NO_COLOR.",
    )


def _make_printer(output: str, *, no_color: bool) -> Printer:
    terminal = sys.stdout.isatty()
    return Printer(
        OutputFormat(output),
        use_colour(os.environ, terminal=terminal, disabled=no_color),
        terminal,
        get_terminal_size().columns if terminal else None,
    )


@dataclass(frozen=True, slots=True)
class ProgressBar:
    """How to say that one more is done, and something beside it."""

    advance: Callable[[], None]
    message: Callable[[str], None] = note


def _nothing() -> None: ...


@contextmanager
def progress_bar(total: int, *, visible: bool, label: str = "submitting") -> Iterator[ProgressBar]:
    """Show a bar of this many steps if it is seen."""
    if not visible:
        yield ProgressBar(_nothing)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn(label), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        plainly = partial(bar.console.print, markup=False, highlight=False)
        yield ProgressBar(lambda: bar.advance(task), plainly)
