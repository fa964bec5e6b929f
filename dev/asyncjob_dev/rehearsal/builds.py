"""The steps that build: distributions and chart, what these say of themselves, and once more."""

import io
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import yaml

from asyncjob_dev.binaries import resolve
from asyncjob_dev.rehearsal.distributions import (
    DISTRIBUTIONS,
    build,
    build_wheel,
    commit_time,
    digests,
    file_names,
    run,
)
from asyncjob_dev.rehearsal.metadata import source_problems, unconditional_needs, wheel_problems
from asyncjob_dev.rehearsal.report import Check, judged, ok

PYTHON_FILES: Final = Path("dist/python")
CHART_FILES: Final = Path("dist/chart")
BARE_NEEDS: Final = ["httpx", "pydantic", "pydantic-core"]
"""What the SDK needs without any extra."""


def wheels(root: Path) -> Iterator[Check]:
    """Build wheels and source archives, and look at what they say of themselves."""
    out = root / PYTHON_FILES
    _empty(out)
    build(root, out, commit_time(root))
    for one in DISTRIBUTIONS:
        wheel, source = one.wheel(root, out), one.source(root, out)
        yield judged(wheel.name, wheel_problems(wheel), f"{wheel.stat().st_size:,} bytes")
        yield judged(source.name, source_problems(source), f"{source.stat().st_size:,} bytes")
    yield from rebuilt(root, out)
    found = unconditional_needs(DISTRIBUTIONS[0].wheel(root, out))
    others = [f"it needs {', '.join(found)}"] if found != BARE_NEEDS else []
    yield judged("the SDK without extras", others, f"needs {', '.join(found)}")


def rebuilt(root: Path, out: Path) -> Iterator[Check]:
    """Build a wheel of each source archive, as those do who install no wheels, and compare."""
    with TemporaryDirectory() as folder:
        for one in DISTRIBUTIONS:
            source, wheel = one.source(root, out), one.wheel(root, out)
            run(["tar", "--extract", f"--file={source}", f"--directory={folder}"])
            tree = Path(folder) / source.name.removesuffix(".tar.gz")
            build_wheel(tree, Path(folder))
            there, built = file_names(wheel), file_names(Path(folder) / wheel.name)
            differ = sorted(there ^ built)
            problems = [f"only one of the wheels has {', '.join(differ)}"] if differ else []
            yield judged(f"a wheel from {source.name}", problems, f"the same {len(built)} files")


def chart(root: Path) -> Iterator[Check]:
    """Package the chart."""
    out = root / CHART_FILES
    _empty(out)
    run([str(resolve("helm").path), "package", "charts/asyncjob", f"--destination={out}"], cwd=root)
    (packed,) = out.glob("*.tgz")
    data = packed.read_bytes()
    yield judged(packed.name, chart_problems(data), f"{len(data):,} bytes")


def chart_problems(packed: bytes) -> Iterator[str]:
    """Yield what a packaged chart lacks."""
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        names = set(archive.getnames())
        file = archive.extractfile("asyncjob/Chart.yaml")
        described = yaml.safe_load(file.read()) if file else {}
    crds = ("asyncjobs", "asyncqueues", "asynccronjobs", "asyncarrays")
    wanted = ("values.schema.json", *(f"files/crds/{one}.yaml" for one in crds))
    yield from (f"no {one}" for one in wanted if f"asyncjob/{one}" not in names)
    if not described.get("kubeVersion"):
        yield "it does not say which Kubernetes it needs"


def reproducible(root: Path) -> Iterator[Check]:
    """Build what is committed twice: in other folders, from files of other times."""
    epoch = commit_time(root)
    made = []
    with TemporaryDirectory() as folder:
        for name, clock in (("first", 1_000_000_000), ("a second one", 1_900_000_000)):
            tree = Path(folder) / name / "tree"
            tree.mkdir(parents=True)
            committed = tree.parent / "tree.tar"
            run(["git", "archive", f"--output={committed}", "HEAD"], cwd=root)
            run(["tar", "--extract", f"--file={committed}", f"--directory={tree}"])
            for path in tree.rglob("*"):
                os.utime(path, (clock, clock), follow_symlinks=False)
            out = tree.parent / "out"
            build(tree, out, epoch)
            made.append(digests(out))
    first, second = made
    for name in sorted({*first, *second}):
        differ = [] if first.get(name) == second.get(name) else ["two builds have two digests"]
        yield judged(name, differ, f"sha256:{first.get(name, '')[:16]}… twice")
    yield ok("chart and images", "no such promise: Helm and the engine write the time of the build")


def _empty(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
