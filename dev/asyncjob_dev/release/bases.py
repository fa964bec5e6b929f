"""Which images a release is built on: only those named by a digest, which nobody can move."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

DOCKERFILES: Final = (Path("worker-image/Dockerfile"), Path("operator/Dockerfile"))

_PINNED: Final = re.compile(r"\S+@sha256:[0-9a-f]{64}")
_ARG: Final = re.compile(r"ARG\s+(\w+)=(\S+)")
_FROM: Final = re.compile(r"FROM\s+(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?", re.IGNORECASE)
_VARIABLE: Final = re.compile(r"\$\{?(\w+)\}?")


def unpinned_images(root: Path, given: Mapping[str, str]) -> Iterator[str]:
    """Yield what is built on an image without a digest, with the way out.

    `given` are build arguments, as the release workflow gives them.
    """
    for file in DOCKERFILES:
        for image in dict.fromkeys(images((root / file).read_text(encoding="utf-8"), given)):
            if not _PINNED.fullmatch(image):
                yield (
                    f"{file}: {image} is a base without a digest: BASE=image@sha256:… says which "
                    "(the release workflow takes it from the repository variable IMAGE_BASE)"
                )


def images(dockerfile: str, given: Mapping[str, str]) -> Iterator[str]:
    """Yield the images that the stages of a Dockerfile begin with, but for other stages."""
    arguments: dict[str, str] = {}
    stages = {"scratch"}
    for line in dockerfile.splitlines():
        if argument := _ARG.fullmatch(line.strip()):
            name, default = argument.groups()
            arguments[name] = given.get(name) or _filled(default, arguments)
        elif stage := _FROM.fullmatch(line.strip()):
            image, name = _filled(stage[1], arguments), stage[2]
            if image not in stages:
                yield image
            if name:
                stages.add(name)


def _filled(text: str, arguments: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda found: arguments.get(found[1], found[0]), text)
