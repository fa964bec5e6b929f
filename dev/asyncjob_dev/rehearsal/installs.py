"""The steps that install: on each Python, with and without extras; licences of what comes along."""

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from asyncjob_dev.rehearsal import licences as licence_rules
from asyncjob_dev.rehearsal.builds import PYTHON_FILES
from asyncjob_dev.rehearsal.distributions import DISTRIBUTIONS
from asyncjob_dev.rehearsal.environments import (
    SUPPORTED,
    CleanEnvironment,
    find_python,
    left_behind,
    new_environment,
)
from asyncjob_dev.rehearsal.report import Check, failed, judged, not_tried, ok
from asyncjob_dev.rehearsal.tutorial import play_tutorial

BARE: Final = "from asyncjob import AsyncJobsClient, JobsClient, Submission, AsyncJob, AsyncQueue"
NAMES: Final = frozenset(
    {
        *(
            "annotated-types",
            "anyio",
            "asyncjob-sdk",
            "certifi",
            "h11",
            "httpcore",
            "httpx",
            "idna",
        ),
        *("pydantic", "pydantic-core", "typing-extensions", "typing-inspection"),
    }
)
"""All that the SDK may bring without extras."""

HINTS: Final = {
    "kubernetes": "from asyncjob import KubernetesJobsClient",
    "handlers": "from asyncjob import WorkerApp",
    "offload": "from asyncjob.offload.store import check_driver; check_driver('file')",
    "metrics": "import asyncjob.metrics.prometheus",
    "tracing": (
        "from asyncjob.tracing.provider import set_up_tracing;"
        "set_up_tracing({'OTEL_TRACES_EXPORTER': 'otlp'}, 'mine', 'asyncjob-sdk')"
    ),
}
"""What uses an extra, in one line."""


def install(root: Path) -> Iterator[Check]:
    """Install the wheels on each supported Python, and take them away again."""
    for version in SUPPORTED:
        python = find_python(version, os.environ)
        if not python:
            yield not_tried(f"Python {version}", "no such Python on PATH, in pyenv or known to uv")
            continue
        with TemporaryDirectory(prefix="install-") as folder:
            yield from _bare(root, new_environment(Path(folder) / "bare", python), version)
            yield from _whole(root, new_environment(Path(folder) / "whole", python), version)


def tutorial(root: Path) -> Iterator[Check]:
    """Follow the tutorial's text with what is installed from the wheels, on each Python."""
    for version in SUPPORTED:
        if python := find_python(version, os.environ):
            with TemporaryDirectory(prefix="tutorial-") as folder:
                environment = new_environment(Path(folder) / "environment", python)
                install_all(root, environment)
                seen = play_tutorial(root, environment, Path(folder) / "project")
                yield ok(f"Python {version}", seen)
        else:
            yield not_tried(f"Python {version}", "no such Python here")


def licences(root: Path) -> Iterator[Check]:
    """Look at the licence of each package that an installation of everything brings."""
    python = next(filter(None, (find_python(one, os.environ) for one in SUPPORTED)), None)
    if python is None:
        yield not_tried("dependencies", f"none of Python {', '.join(SUPPORTED)} is here")
        return
    with TemporaryDirectory(prefix="licences-") as folder:
        environment = new_environment(Path(folder), python)
        install_all(root, environment, every_extra=True)
        found = licence_rules.installed_licences(environment.site_packages)
    listing = root / "dist" / "licences.txt"
    lines = (f"{name}: {', '.join(sorted(named))}\n" for name, named in found.items())
    listing.write_text("".join(lines), encoding="utf-8")
    seen = f"{len(found)} packages, listed in dist/{listing.name}"
    yield judged("dependencies", licence_rules.problems(found), seen)


def install_all(
    root: Path, environment: CleanEnvironment, *options: str, every_extra: bool = False
) -> None:
    """Install all wheels, with tracing, or with every extra that they have.

    Only not the wheel of programs, which has the licences of what it has inside.
    """
    wheels = []
    for one in DISTRIBUTIONS:
        extras = one.project(root).get("optional-dependencies", {}).keys() - {"controlplane"}
        wanted = (
            ",".join(sorted(extras)) if every_extra else "tracing" if "tracing" in extras else ""
        )
        wheel = one.wheel(root, root.absolute() / PYTHON_FILES)
        wheels.append(f"{one.name}[{wanted}] @ {wheel.as_uri()}")
    environment.install(*options, *wheels)


def _bare(root: Path, environment: CleanEnvironment, version: str) -> Iterator[Check]:
    sdk = DISTRIBUTIONS[0]
    environment.install(str(sdk.wheel(root, root.absolute() / PYTHON_FILES)))
    more = environment.names() - NAMES
    yield judged(f"Python {version}, the SDK alone", (f"brings {one}" for one in more))
    environment.run("python", "-c", BARE)
    for extra, line in HINTS.items():
        said = environment.run("python", "-c", line, accept=(1,))
        if f"pip install 'asyncjob-sdk[{extra}]'" not in said:
            yield failed(f"Python {version}, without {extra}", said.splitlines()[-1])
    said = environment.run("asyncjob", "list", accept=(7,))
    wanted = "pip install 'asyncjob-sdk[cli]'"
    problems = [] if wanted in said else [said.strip()]
    yield judged(f"Python {version}, each missing extra is named", problems)
    yield _uninstalled(environment, (sdk.name,), f"Python {version}, the SDK uninstalled")


def _whole(root: Path, environment: CleanEnvironment, version: str) -> Iterator[Check]:
    install_all(root, environment)
    environment.check()
    programs = [name for one in DISTRIBUTIONS for name in one.programs]
    for name in programs:
        environment.run(name, "--help")
    environment.run("asyncjob", "explain", "CrashBudgetExhausted")
    yield ok(f"Python {version}, everything", f"{', '.join(programs)} start")
    ours = tuple(one.name for one in DISTRIBUTIONS)
    yield _uninstalled(environment, ours, f"Python {version}, everything uninstalled")


def _uninstalled(environment: CleanEnvironment, names: tuple[str, ...], what: str) -> Check:
    environment.uninstall(names)
    return judged(what, left_behind(environment), "nothing is left")
