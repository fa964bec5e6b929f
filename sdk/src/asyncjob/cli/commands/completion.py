"""`completion`.

The completion scripts for shells and for kubectl, and the hidden command through which kubectl asks
for completions.
"""

from collections.abc import Sequence
from typing import Final

import click
from click.shell_completion import ShellComplete, get_completion_class

from asyncjob.cli.command_classes import SectionedCommand

SHELLS = ("bash", "zsh", "fish")
COMPLETE_VARIABLE = "_ASYNCJOB_COMPLETE"


@click.command(cls=SectionedCommand)
@click.argument("shell", type=click.Choice([*SHELLS, "kubectl"]))
@click.pass_context
def completion(context: click.Context, /, shell: str) -> None:
    """Print the completion script for a shell, or for the kubectl plugin.

    \b
      bash     source <(asyncjob completion bash)
      zsh      source <(asyncjob completion zsh)
      fish     asyncjob completion fish | source
      kubectl  asyncjob completion kubectl > ~/.local/bin/kubectl_complete-asyncjob
               chmod +x ~/.local/bin/kubectl_complete-asyncjob   # a folder on the PATH
    """  # noqa: D301 - click takes a real backspace for "do not wrap"
    if shell == "kubectl":
        click.echo(KUBECTL_COMPLETION_SCRIPT, nl=False)
        return
    kind = get_completion_class(shell)
    assert kind
    click.echo(kind(context.find_root().command, {}, "asyncjob", COMPLETE_VARIABLE).source())


@click.command(
    "__complete",
    hidden=True,
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def complete(context: click.Context, /, words: Sequence[str]) -> None:
    """Print how kubectl is to complete the last word."""
    for line in kubectl_completions(context.find_root().command, words, context.obj):
        click.echo(line)


KUBECTL_COMPLETION_SCRIPT: Final = """\
#!/bin/sh
# kubectl asks this program how to complete `kubectl asyncjob …`.
exec asyncjob __complete "$@"
"""

NO_FILES_DIRECTIVE: Final = ":4"
"""Cobra's directive: complete nothing else; `:0` lets the shell offer files."""
FILES_DIRECTIVE: Final = ":0"


def kubectl_completions(
    root: click.Command, arguments: Sequence[str], obj: object = None
) -> list[str]:
    """Return what kubectl is to offer for the last word, and its directive.

    `obj` is the one of the commands' contexts, through which names are looked up.
    """
    shell = ShellComplete(root, {"obj": obj}, "asyncjob", "")
    *before, last = arguments or [""]
    found = shell.get_completions(list(before), last)
    plain = [one for one in found if one.type == "plain"]
    lines = [f"{one.value}\t{one.help}" if one.help else str(one.value) for one in plain]
    return [*lines, NO_FILES_DIRECTIVE if plain or not found else FILES_DIRECTIVE]
