"""Control planes of other Kubernetes versions than the one that all tests run on.

`dev/kubernetes/1.32` pins programs as `dev/tools` does; what it has no module of, such as etcd, is
the one of `dev/tools`.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from asyncjob_dev.binaries.cache import BinaryCache
from asyncjob_dev.binaries.installed import Binary
from asyncjob_dev.binaries.pins import TOOLS
from asyncjob_dev.binaries.resolver import Resolver
from asyncjob_dev.bundled import CHECKOUT
from asyncjob_dev.cache_folder import cache_dir

VERSIONS_DIR = CHECKOUT / "dev" / "kubernetes"


def other_versions(versions_dir: Path = VERSIONS_DIR) -> list[str]:
    """Return the minor versions that have modules, such as `1.32`; none outside of a checkout."""
    return sorted(path.name for path in versions_dir.glob("*.*") if path.is_dir())


def programs_of(version: str, environ: Mapping[str, str]) -> list[Binary]:
    """Return a control plane of that version, building what is missing; raises a `BinaryError`.

    KUBEBUILDER_ASSETS means nothing here: whoever set it meant another version.
    """
    folder = VERSIONS_DIR / version
    own = [tool for tool in TOOLS if (folder / tool).is_dir()]
    unset = {name: value for name, value in environ.items() if name != "KUBEBUILDER_ASSETS"}
    others = [tool for tool in TOOLS if tool not in own]
    return [*Resolver(unset, tools_dir=folder).build(own), *Resolver(unset).resolve_all(others)]


def assets_folder(programs: list[Binary], environ: Mapping[str, str]) -> Path:
    """Return a folder with links to the programs, as KUBEBUILDER_ASSETS names one."""
    paths = "\0".join(f"{one.tool}\0{one.path}" for one in programs)
    cache = BinaryCache(cache_dir(environ))
    folder = cache.root / "kubernetes" / hashlib.sha256(paths.encode()).hexdigest()[:12]
    with cache.translate_errors():
        folder.mkdir(parents=True, exist_ok=True)
        for one in programs:
            draft = cache.draft(folder / one.tool)
            draft.unlink(missing_ok=True)
            draft.symlink_to(one.path)
            draft.replace(folder / one.tool)
    return folder
