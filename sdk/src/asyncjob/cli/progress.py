"""A progress bar on stderr for people; nothing for anyone else."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from asyncjob.cli.screen import note


@dataclass(frozen=True, slots=True)
class ProgressBar:
    """How to say that one more is done, and something beside it."""

    advance: Callable[[], None]
    message: Callable[[str], None] = note


def _nothing() -> None: ...


@contextmanager
def progress_bar(total: int, *, visible: bool, label: str = "submitting") -> Iterator[ProgressBar]:
    """Show a bar of so many steps if it is seen."""
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
