"""A progress bar on stderr for people; nothing for anyone else."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from asyncjob.cli.screen import note


@dataclass(frozen=True, slots=True)
class Progress:
    """How to say that one more is done, and something beside it."""

    advance: Callable[[], None]
    tell: Callable[[str], None] = note


def _nothing() -> None: ...


@contextmanager
def progress(total: int, *, seen: bool, doing: str = "submitting") -> Iterator[Progress]:
    """Show a bar of so many steps if it is seen."""
    if not seen:
        yield Progress(_nothing)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn(doing), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        plainly = partial(bar.console.print, markup=False, highlight=False)
        yield Progress(lambda: bar.advance(task), plainly)
