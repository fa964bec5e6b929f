"""The click classes of our commands.

Commands that are imported only when they are called, and a help that lists options and commands in
sections.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Final

import click

PLUGINS: Final = "asyncjob.commands"
"""The group of entry points where commands of other distributions are."""

CONNECTION_SECTION: Final = "Where"
OUTPUT_SECTION: Final = "Output"


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """A command that is yet to be imported: where it is, and its line in the help."""

    import_path: str
    help: str


@dataclass(frozen=True, slots=True)
class PluginCommand:
    """A command that another distribution brings, by an entry point of the command's name."""

    name: str
    distribution: str
    help: str

    def load(self) -> click.Command:
        """Import it; without the distribution return one that says what to install."""
        for found in entry_points(group=PLUGINS, name=self.name):
            command: click.Command = found.load()
            return command
        return click.Command(
            self.name,
            callback=self._ask_to_install,
            params=[click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED)],
            context_settings={"ignore_unknown_options": True, "help_option_names": []},
        )

    def _ask_to_install(self, **_arguments: Any) -> None:
        raise click.UsageError(
            f"asyncjob {self.name} comes with {self.distribution}: pip install {self.distribution}"
        )


class SectionedOption(click.Option):
    """An option that the help shows under a heading of its own."""

    def __init__(self, *args: Any, section: str = "", **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.section = section


class SectionedCommand(click.Command):
    """A command whose help shows what all commands share after what is its own."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, section by section."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                section = getattr(parameter, "section", "") or "Options"
                sections.setdefault(section, []).append(record)
        for section in sorted(sections, key=_section_order):
            with formatter.section(section):
                formatter.write_dl(sections[section])


def _section_order(section: str) -> int:
    return {"Options": -1, OUTPUT_SECTION: 1, CONNECTION_SECTION: 2}.get(section, 0)


class SectionedGroup(SectionedCommand, click.Group):
    """A group of commands that is imported with them, such as `queue`."""

    command_class = SectionedCommand

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, and the commands before them."""
        self.format_commands(ctx, formatter)
        super().format_options(ctx, formatter)


class LazyGroup(SectionedGroup):
    """The root: sections of commands, none of them imported before it is called."""

    def __init__(
        self,
        *args: Any,
        listed: Mapping[str, Mapping[str, LazyCommand | PluginCommand]],
        unlisted: Mapping[str, LazyCommand],
        **attributes: Any,
    ) -> None:
        super().__init__(*args, **attributes)
        self.sections = listed
        self._listed = {name: one for part in listed.values() for name, one in part.items()}
        self._unlisted = unlisted

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in the order of the help."""
        return [*self._listed, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command; None if there is no such one."""
        listed = self._listed.get(cmd_name) or self._unlisted.get(cmd_name)
        if listed is None:
            return super().get_command(ctx, cmd_name)
        if isinstance(listed, PluginCommand):
            return listed.load()
        module, _, attribute = listed.import_path.partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; say which might be meant where there is no such one."""
        name = args[0]
        if self.get_command(ctx, name) is None:
            close = get_close_matches(name, self._listed, n=1, cutoff=0.5)
            meant = f"; did you mean {close[0]}?" if close else ""
            ctx.fail(f"unknown command {name}{meant}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - as click calls it
        """Write the sections."""
        for title, part in self.sections.items():
            with formatter.section(title):
                formatter.write_dl(_help_lines(part))


def _help_lines(part: Mapping[str, LazyCommand | PluginCommand]) -> Sequence[tuple[str, str]]:
    return [(name, listed.help) for name, listed in part.items()]
