"""What the project ships, read from its files: CRDs and policies, and the roles of its parts."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import orjson
import yaml

from asyncjob_simulation.apiserver.server import ApiServer

Object = dict[str, Any]

ROOT: Final = Path(__file__).parents[3]


def install(server: ApiServer, root: Path = ROOT) -> None:
    """Install CRDs, policies and roles."""
    server.install(manifests(root / "crds"))
    server.install(manifests(root / "dev/manifests/rbac.yaml"))


def manifests(path: Path) -> Iterator[Object]:
    """Yield the manifests of a file, or of all files of a folder in the order of their names."""
    for file in sorted(path.glob("*.yaml")) if path.is_dir() else [path]:
        for text in _documents(file):
            yield orjson.loads(text)


@cache
def _documents(file: Path) -> tuple[bytes, ...]:
    """Return the documents of a file as JSON: reading YAML takes most of the time."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    documents = yaml.load_all(file.read_text(encoding="utf-8"), Loader=loader)  # safe
    return tuple(orjson.dumps(one) for one in documents if one)
