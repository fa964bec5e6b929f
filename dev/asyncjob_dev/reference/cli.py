"""Generated parts of the pages on command lines.

Every command of the CLI with its options, and the worker's options.
"""

from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path
from textwrap import dedent

import click

from asyncjob.cli.entry import COMMANDS, root
from asyncjob.explanations.catalog import catalog
from asyncjob.explanations.texts import Kind, by_code
from asyncjob_dev.reference.blocks import table
from asyncjob_dev.reference.explanations import in_page, link_to
from asyncjob_dev.reference.options import option_table
from asyncjob_worker.cli import run

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


def audit_rules() -> str:
    """Return the table of the audit's rules, each with a link to its explanation."""
    folder = Path("docs/reference")
    found = [one for one in catalog() if one.kind is Kind.AUDIT_RULE]
    return table(("Rule", "What holds"), [(link_to(one, folder), one.means) for one in found])


def exit_codes(program: str = "") -> str:
    """Return the table of a program's exit codes; those of the command line have no prefix."""
    folder = Path("docs/reference")
    rows = [
        (one.code.rpartition("-")[2], in_page(one.means, folder))
        for one in by_code(Kind.EXIT_CODE).values()
        if one.code.startswith(f"{program}exit-")
    ]
    return table(("Code", "Meaning"), [(f"`{code}`", text) for code, text in rows])


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
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield f"```text\n{usage}\n```"
    yield from _paragraphs(command.help or "")
    options = [one for one in command.params if isinstance(one, click.Option)]
    own: list[click.Parameter] = [one for one in options if one.name not in SHARED]
    if own:
        yield _options(own, context)


def _paragraphs(text: str) -> Iterator[str]:
    """Return the help as Markdown; what click must not wrap becomes a block of code."""
    for paragraph in cleandoc(text).split("\n\n"):
        kept = paragraph.removeprefix(UNWRAPPED)
        yield _block(dedent(kept).strip()) if kept != paragraph else paragraph


def _block(text: str) -> str:
    is_typed = all(line.startswith("asyncjob ") for line in text.splitlines())
    return f"```{'console' if is_typed else 'text'}\n{text}\n```"


def _options(parameters: list[click.Parameter], context: click.Context) -> str:
    records = [one.get_help_record(context) for one in parameters]
    rows = [(f"`{flags}`", meaning) for flags, meaning in filter(None, records)]
    return table(("Option", "Meaning"), rows)


def worker_options() -> str:
    """Return the table of options: variable, default, meaning."""
    return option_table(run)
