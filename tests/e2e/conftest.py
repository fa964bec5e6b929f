"""A cluster for the whole run, with asyncjob's images, CRDs, policies, roles and operator in it.

Whoever tests something else than what is applied here takes `cluster`, which has the images and
nothing installed.
"""

import hashlib
import os
import uuid
from collections.abc import Iterator

import pytest

from asyncjob_dev.binaries.cache import cache_dir
from asyncjob_dev.environment.layout import ROOT
from asyncjob_dev.errors import DevError
from asyncjob_dev.images import Engine, Recipe, build, buildah_in, find_engine
from e2e import faults
from e2e.cluster import Cluster
from e2e.space import WORKER, Space
from e2e.targets import Images, Target, choose

SYSTEM = "asyncjob-e2e"
DOCKERFILES = {"worker": "worker-image", "operator": "operator"}
CHECKOUT = hashlib.sha256(str(ROOT).encode()).hexdigest()[:8]
"""Checkouts on one machine share the engine's images, so each has names of its own."""
RESTRICTED = "pod-security.kubernetes.io/enforce=restricted"


@pytest.fixture(scope="session")
def engine() -> Engine:
    """Take what builds images here; buildah keeps them in the cache."""
    found = find_engine(os.environ)
    return buildah_in(cache_dir(os.environ) / "images") if found.name == "buildah" else found


@pytest.fixture(scope="session")
def images(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Images:
    return Images(engine, tmp_path_factory.mktemp("images"))


@pytest.fixture(scope="session")
def built(engine: Engine) -> dict[str, str]:
    """Build the images from the repository's Dockerfiles; unchanged layers come from the cache."""
    names = {name: f"localhost/asyncjob-{name}:e2e-{CHECKOUT}" for name in DOCKERFILES}
    for name, folder in DOCKERFILES.items():
        build(engine, Recipe(ROOT / folder / "Dockerfile", names[name]), os.environ)
    return names


@pytest.fixture(scope="session")
def target(built: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """Bring the chosen cluster up."""
    try:
        chosen = choose(os.environ, tmp_path_factory.mktemp("target"))
    except DevError as error:
        pytest.exit(str(error), returncode=2)
    with chosen.up():
        yield chosen


@pytest.fixture(scope="session")
def cluster(
    target: Target,
    built: dict[str, str],
    images: Images,
    tmp_path_factory: pytest.TempPathFactory,
) -> Cluster:
    """Load the images; nothing of asyncjob is installed by this."""
    loaded = {name: target.load(image, images) for name, image in built.items()}
    return Cluster(target.kubeconfig, tmp_path_factory.mktemp("cluster"), loaded)


@pytest.fixture(scope="session")
def installed(cluster: Cluster) -> Iterator[Cluster]:
    """Apply CRDs, policies, roles and an operator, and take the operator away at the end."""
    cluster.kubectl("apply", f"--filename={ROOT / 'crds'}")
    cluster.kubectl("apply", f"--filename={ROOT / 'dev' / 'manifests' / 'rbac.yaml'}")
    cluster.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    cluster.apply("system", SYSTEM)
    cluster.until_available(SYSTEM, "operator")
    yield cluster
    bindings = [f"clusterrolebinding/{SYSTEM}-{name}" for name in ("operator", "operator-install")]
    ours = [f"namespace/{SYSTEM}", f"namespace/{faults.NAMESPACE}", *bindings]
    cluster.kubectl("delete", "--wait=false", "--ignore-not-found", *ours)


@pytest.fixture
def space(installed: Cluster) -> Iterator[Space]:
    """Prepare a restricted namespace with one worker, ready to work."""
    name = f"e2e-{uuid.uuid4().hex[:8]}"
    installed.kubectl("create", "namespace", name)
    installed.kubectl("label", "namespace", name, RESTRICTED)
    installed.apply("worker", name)
    installed.until_available(name, WORKER)
    yield Space(installed, name)
    installed.kubectl("delete", "namespace", name, "--wait=false")
