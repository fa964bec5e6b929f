"""`submit`: one job or many."""

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import click

from asyncjob.cli.commands.deliver import deliver
from asyncjob.cli.commands.wait import Wish, wait_for
from asyncjob.cli.documents import Document, DocumentError, read
from asyncjob.cli.durations import Duration
from asyncjob.cli.exit_codes import ExitCode
from asyncjob.cli.lazy import SectionedCommand
from asyncjob.cli.manifests import jobs_in
from asyncjob.cli.orders import MistakesError, Wanted, wanted, with_type
from asyncjob.cli.pairs import payload_of
from asyncjob.cli.place import Place, placed
from asyncjob.cli.screen import Screen, shown
from asyncjob.cli.submit_options import fields_of, submission_options
from asyncjob.cli.tables import one_line
from asyncjob.cli.world import World


@click.command(cls=SectionedCommand)
@click.argument("kind", required=False, metavar="[TYPE]")
@click.argument("words", nargs=-1, metavar="[PAYLOAD]")
@click.option(
    "--file",
    "-f",
    "files",
    multiple=True,
    metavar="FILE",
    help="With TYPE: payloads; without: jobs. JSON, JSON lines, YAML, a folder, - for stdin.",
)
@submission_options
@click.option("--wait", is_flag=True, help="Until it has finished; exit code as `wait`.")
@click.option("--timeout", type=Duration(), default="1h", show_default=True, help="Of --wait.")
@shown()
@placed
@click.pass_obj
def submit(
    world: World,
    /,
    *,
    kind: str | None,
    words: Sequence[str],
    files: Sequence[str],
    wait: bool,
    timeout: int,
    place: Place,
    screen: Screen,
    **options: Any,
) -> int:
    """Submit a job, or many.

    PAYLOAD is JSON, or pairs: key=text, key:=JSON. Files without a TYPE hold whole jobs: objects
    with the fields of an AsyncJob's spec, name and labels, or manifests. Everything is checked
    before the first job is submitted; options win over what files say.

    \b
      asyncjob submit SEND_EMAIL to=ada@example.com urgent:=true
      asyncjob submit report.csv '{"source": "orders.csv"}' --wait
      asyncjob submit resize -f payloads.jsonl --queue images
      asyncjob submit -f jobs/ -o name
    """  # noqa: D301 - click takes a real backspace for "do not wrap"
    wishes = _wanted(kind, words, files, options, place)
    with world.connect(place) as jobs:
        outcome = deliver(jobs, wishes, screen, silent=wait)
        if not (wait and outcome.ids):
            return outcome.code
        wish = Wish(outcome.ids, timeout=timeout)
        return wait_for(jobs, world, wish, screen) or outcome.code


def _wanted(
    kind: str | None,
    words: Sequence[str],
    files: Sequence[str],
    options: dict[str, Any],
    place: Place,
) -> list[Wanted]:
    """Return what is to be submitted; raises UsageError where that is not clear."""
    if kind is None and not files:
        raise click.UsageError("what? Give a TYPE, or files of jobs with -f")
    if words and files:
        raise click.UsageError("give a payload as argument or with -f, not both")
    try:
        return wanted(_documents(kind, words, files, place), fields_of(options))
    except (DocumentError, MistakesError) as error:
        raise Refused(str(error)) from error
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _documents(
    kind: str | None, words: Sequence[str], files: Sequence[str], place: Place
) -> Iterator[Document]:
    found = read(files, sys.stdin)
    if kind is None:
        for document in found:
            yield from jobs_in(document, place.namespace)
    elif files:
        yield from with_type(kind, found)
    elif words:
        yield from with_type(kind, [Document("", payload_of(words))])
    else:
        yield Document("", {"type": kind})


class Refused(click.ClickException):
    """What is to be submitted cannot be; nothing was."""

    exit_code = ExitCode.USAGE

    def show(self, file: Any = None) -> None:  # noqa: ARG002 - as click calls it
        """Say so, a line for each mistake."""
        for line in self.message.splitlines():
            click.echo(f"error: {one_line(line)}", err=True)
        click.echo("nothing was submitted", err=True)
