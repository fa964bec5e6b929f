"""Completion in kubectl's way: a program `kubectl_complete-asyncjob` that prints one per line."""

from collections.abc import Sequence
from typing import Final

import click
from click.shell_completion import ShellComplete

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
