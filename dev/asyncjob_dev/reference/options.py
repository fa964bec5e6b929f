"""The tables of a program's options: flag, environment variable, default and meaning."""

from collections.abc import Iterator
from dataclasses import dataclass

import click

from asyncjob_dev.reference.blocks import table


@dataclass(frozen=True, slots=True)
class DocumentedOption:
    """One option as the reference shows it."""

    flag: str
    variable: str
    default: str
    meaning: str


def documented_options(command: click.Command) -> Iterator[DocumentedOption]:
    """Return each option of a command."""
    for option in command.params:
        if isinstance(option, click.Option):
            default = _default_text(option)
            yield DocumentedOption(option.opts[0], str(option.envvar), default, option.help or "")


def option_table(command: click.Command) -> str:
    """Return the table of a command's options."""
    return table(
        ("Option", "Variable", "Default", "Meaning"),
        [
            (f"`{option.flag}`", f"`{option.variable}`", option.default, option.meaning)
            for option in documented_options(command)
        ],
    )


def _default_text(option: click.Option) -> str:
    if isinstance(option.show_default, str):
        return option.show_default
    number = isinstance(option.default, float)
    return f"`{option.default:g}`" if number else f"`{option.default}`"
