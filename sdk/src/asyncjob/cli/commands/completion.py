"""`completion`: scripts for shells, for `asyncjob` and for `kubectl asyncjob`."""

from collections.abc import Sequence

import click
from click.shell_completion import get_completion_class

from asyncjob.cli.completing import KUBECTL_COMPLETION_SCRIPT, kubectl_completions
from asyncjob.cli.lazy import SectionedCommand

SHELLS = ("bash", "zsh", "fish")
COMPLETE_VARIABLE = "_ASYNCJOB_COMPLETE"


@click.command(cls=SectionedCommand)
@click.argument("shell", type=click.Choice([*SHELLS, "kubectl"]))
@click.pass_context
def completion(context: click.Context, /, shell: str) -> None:
    """Print a shell's completion script, or the one by which kubectl completes the plugin.

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
