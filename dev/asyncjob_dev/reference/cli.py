"""Generated parts of the pages on command lines.

Every command of the CLI with its options, and the worker's options.
"""

from collections.abc import Iterator
from inspect import cleandoc
from textwrap import dedent

import click

from asyncjob.cli.entry import COMMANDS, root
from asyncjob.cli.exit_codes import EXIT_CODE_DOCS
from asyncjob_dev.reference.blocks import table
from asyncjob_worker.cli import run
from asyncjob_worker.options import documented_options

UNWRAPPED = "\b\n"
"""Before what click must not wrap."""

SHARED = frozenset({"output", "no_color", "namespace", "context", "kubeconfig", "server", "token"})
"""Options that most commands have; the page has them once."""


def commands() -> str:
    """Return a section for each command, in the order of the help."""
    context = click.Context(root, info_name="asyncjob")
    parts = [
        part
        for title, listed in COMMANDS.items()
        for part in (f"## {title}", *_named(list(listed), context))
    ]
    return "\n\n".join(parts)


def shared() -> str:
    """Return the table of the options that most commands have."""
    context = click.Context(root, info_name="asyncjob")
    command = root.get_command(context, "list")
    assert command
    options = [one for one in command.params if one.name in SHARED]
    return _options(options, click.Context(command))


def exit_codes() -> str:
    """Return the table of exit codes."""
    rows = [(f"`{code.value}`", text) for code, text in EXIT_CODE_DOCS.items()]
    return table(("Code", "Meaning"), rows)


def _named(names: list[str], context: click.Context) -> Iterator[str]:
    for name in names:
        command = root.get_command(context, name)
        assert command
        own = click.Context(command, info_name=name, parent=context)
        yield from _command(command, own)
        if isinstance(command, click.Group):
            for sub in command.commands.values():
                yield from _command(sub, click.Context(sub, info_name=sub.name, parent=own))


def _command(command: click.Command, context: click.Context) -> Iterator[str]:
    yield f"### {context.command_path}"
    yield f"```\n{' '.join([context.command_path, *command.collect_usage_pieces(context)])}\n```"
    yield from _paragraphs(command.help or "")
    options = [one for one in command.params if isinstance(one, click.Option)]
    own: list[click.Parameter] = [one for one in options if one.name not in SHARED]
    if own:
        yield _options(own, context)


def _paragraphs(text: str) -> Iterator[str]:
    """Return the help as Markdown; what click must not wrap becomes a block of code."""
    for paragraph in cleandoc(text).split("\n\n"):
        kept = paragraph.removeprefix(UNWRAPPED)
        yield f"```\n{dedent(kept).strip()}\n```" if kept != paragraph else paragraph


def _options(parameters: list[click.Parameter], context: click.Context) -> str:
    records = [one.get_help_record(context) for one in parameters]
    rows = [(f"`{flags}`", meaning) for flags, meaning in filter(None, records)]
    return table(("Option", "Meaning"), rows)


def worker_options() -> str:
    """Return the table of options: variable, default, meaning."""
    return table(
        ("Option", "Variable", "Default", "Meaning"),
        [
            (f"`{option.flag}`", f"`{option.variable}`", option.default, option.meaning)
            for option in documented_options(run)
        ],
    )
