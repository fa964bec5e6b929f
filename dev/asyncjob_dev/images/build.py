"""Builds one image of the repository."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from asyncjob_dev.images.base import find_base
from asyncjob_dev.images.engines import Engine
from asyncjob_dev.images.network import pip_secrets
from asyncjob_dev.progress import Progress

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class BuildRequest:
    """Which Dockerfile to build, and what to call it; no `base` means the first to be had."""

    dockerfile: Path
    tag: str
    base: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)


def build_image(engine: Engine, recipe: BuildRequest, environ: Mapping[str, str]) -> None:
    """Build; raises ImageError that says what is missing or what the engine said."""
    base = recipe.base or find_base(engine, recipe.dockerfile, environ)
    arguments = {"BASE": base, **recipe.arguments}
    given = [f"--build-arg={name}={value}" for name, value in arguments.items()]
    with (
        tempfile.TemporaryDirectory(prefix="build-") as folder,
        Progress(f"building {recipe.tag} on {base} with {engine.name}"),
    ):
        files = ["--file", str(recipe.dockerfile), "--tag", recipe.tag]
        engine.build([*files, *given, *pip_secrets(Path(folder), environ)], ROOT)
