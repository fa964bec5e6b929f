"""`python -m asyncjob_bench`: the commands behind `make bench`."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import click

from asyncjob_bench import page, report, store
from asyncjob_bench.harness.site import site
from asyncjob_bench.parts import profiles
from asyncjob_bench.parts.part import SCALES, Part, with_brought
from asyncjob_bench.parts.runner import PARTS, Runner
from asyncjob_bench.prices import UNCHANGED, VARIANTS, measure_variants
from asyncjob_bench.scaling import CURVES, measure_curves
from asyncjob_bench.stats.limits import LimitVerdict, check_limits, read_limits
from asyncjob_bench.stats.results import Results
from asyncjob_bench.versions import measure_versions
from asyncjob_dev.binaries.resolver import other_versions
from asyncjob_dev.errors import DevError
from asyncjob_dev.signals import unwind_on_signals

SCALE = click.option("--scale", type=click.Choice(list(SCALES)), default="full", show_default=True)
OUT = click.option("--out", type=click.Path(path_type=Path), default=store.OUT)
LIMITS = click.option("--limits", type=click.Path(path_type=Path), default=store.LIMITS)
REPORT_ONLY = click.option("--report-only", is_flag=True, help="Succeed whatever is missed.")


def _names(known: Sequence[str], value: str) -> list[str]:
    wanted = [name for name in value.split(",") if name]
    if unknown := [name for name in wanted if name not in known]:
        raise click.BadParameter(f"{', '.join(unknown)}: there are {', '.join(known)}")
    return wanted or list(known)


def _parts(_: click.Context, __: click.Parameter, value: str) -> list[Part]:
    return with_brought(_names([part.name for part in PARTS], value), PARTS)


def _curves(_: click.Context, __: click.Parameter, value: str) -> list[str]:
    return _names(list(CURVES), value)


@click.group()
def main() -> None:
    """Measure, compare with the limits, and show."""


@main.command()
@click.option("--parts", callback=_parts, default="", help="Some only, with commas between.")
@SCALE
@OUT
@LIMITS
@REPORT_ONLY
def run(*, parts: list[Part], scale: str, out: Path, limits: Path, report_only: bool) -> None:
    """Measure; store, show and judge what was found."""
    bars, by_kopf = read_limits(limits, "bars"), read_limits(limits, "kopf")
    began = datetime.now(UTC)
    runner = Runner(SCALES[scale], click.echo)
    results = runner.results
    try:
        runner.run(parts)
    finally:  # what was measured before an interruption is not lost with it
        results.run = store.describe_run(scale, [part.name for part in parts], began)
        path = store.write(results, out, store.LATEST)
    everything = len(parts) == len(PARTS)
    if everything:
        (out / store.SOME_PARTS).unlink(missing_ok=True)
    else:
        store.write(results, out, store.SOME_PARTS)
    verdicts = check_limits(bars, results.medians, only_measured=not everything)
    verdicts += check_limits(by_kopf, results.medians, only_measured=True)
    report.plots(results, out)
    click.echo(f"\n{report.text(results, verdicts)}\n\nstored in {path}")
    _end(verdicts, results.failed, report_only=report_only)


@contextmanager
def _shown_and_stored(out: Path, name: str, scale: str, parts: Sequence[str]) -> Iterator[Results]:
    """Give results to be filled; describe, store and show them at the end."""
    began, results = datetime.now(UTC), Results()
    yield results
    results.run = store.describe_run(scale, parts, began)
    path = store.write(results, out, name)
    click.echo(f"\n{report.text(results, [])}\n\nstored in {path}")


@main.command()
@click.option("--curves", callback=_curves, default="", help="Some only, with commas between.")
@SCALE
@OUT
def curves(*, curves: list[str], scale: str, out: Path) -> None:
    """Measure how it scales; nothing is judged."""
    with _shown_and_stored(out, store.CURVES, scale, curves) as results:
        results.curves = measure_curves(curves, scale, click.echo)
    report.plots(results, out)


@main.command()
@click.argument("results", type=click.Path(path_type=Path), default=store.OUT / store.LATEST)
@LIMITS
@REPORT_ONLY
def check(*, results: Path, limits: Path, report_only: bool) -> None:
    """Compare stored results with the limits; exit 1 on a missed or unmeasured bar."""
    found = store.read(results)
    verdicts = check_limits(read_limits(limits, "bars"), found.medians)
    click.echo(report.text(found, verdicts))
    _end(verdicts, found.failed, report_only=report_only)


@main.command()
@SCALE
@OUT
def profile(*, scale: str, out: Path) -> None:
    """Show where operator, worker and API server spend their time; keep the profiles."""
    with _shown_and_stored(out, store.PROFILE, scale, ["profile"]) as results, site() as here:
        heads, results.curves = profiles.take_profiles(here, SCALES[scale], out)
        click.echo(heads)


@main.command()
@click.option("--only", type=click.Choice(list(VARIANTS)), help="This beside what is installed.")
@SCALE
@OUT
def prices(*, only: str | None, scale: str, out: Path) -> None:
    """Show what schema and rules cost the API server, by leaving out one thing at a time."""
    names = (UNCHANGED, only) if only and only != UNCHANGED else tuple(VARIANTS)
    with _shown_and_stored(out, store.PRICES, scale, ["prices"]) as results:
        results.curves["prices"] = measure_variants(SCALES[scale], click.echo, names)


@main.command()
@click.option("--kubernetes", type=click.Choice(other_versions()), help="This one only.")
@SCALE
@OUT
def versions(*, kubernetes: str | None, scale: str, out: Path) -> None:
    """Show what a job costs on other versions of Kubernetes and etcd, beside the pinned ones."""
    names = [kubernetes] if kubernetes else other_versions()
    with _shown_and_stored(out, store.VERSIONS, scale, ["versions", *names]) as results:
        results.curves["versions"] = measure_versions(SCALES[scale], click.echo, names)


@main.command("page")
@click.option("--publish", is_flag=True, help="Take benchmarks/out as what the page shows.")
@click.option("--check", "only_check", is_flag=True, help="Fail if the page would change.")
@OUT
def fill_page(*, publish: bool, only_check: bool, out: Path) -> None:
    """Make tables and plots of docs/explanation/performance.md again, and remarks on limits."""
    if publish:
        page.publish(out)
        page.annotate_limits()
    stale = page.refresh(only_check=only_check)
    for path in stale:
        click.echo(f"{path}: {'is stale' if only_check else 'written'}")
    sys.exit(1 if only_check and stale else 0)


def _end(verdicts: Sequence[LimitVerdict], failed: Iterable[str], *, report_only: bool) -> None:
    missed = [*(verdict.limit.key for verdict in verdicts if not verdict.met), *failed]
    if missed:
        click.echo(f"missed: {', '.join(missed)}", err=True)
    sys.exit(1 if missed and not report_only else 0)


def command() -> None:
    """Run, with foreseeable errors in a sentence."""
    try:
        with unwind_on_signals():
            main()
    except DevError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
