"""A cluster for the whole run, with asyncjob's images in it, and the chart installed once.

Whoever tests something else than the release takes `cluster`, which has the images and nothing
installed.
"""

import hashlib
import os
from collections.abc import Iterator

import pytest

from asyncjob_dev.cache_folder import cache_dir
from asyncjob_dev.environment.settings import ROOT
from asyncjob_dev.errors import DevError
from asyncjob_dev.images import BuildRequest, Engine, build_image, buildah_in, find_engine
from e2e import faults
from e2e.cluster import Cluster
from e2e.release import NAMESPACE, Release
from e2e.space import Space
from e2e.targets import Images, Target, choose

DOCKERFILES = {"worker": "worker-image", "operator": "operator"}
CHECKOUT = hashlib.sha256(str(ROOT).encode()).hexdigest()[:8]
"""Checkouts on one machine share the engine's images, so each has names of its own."""


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
        build_image(engine, BuildRequest(ROOT / folder / "Dockerfile", names[name]), os.environ)
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
def release(cluster: Cluster) -> Iterator[Release]:
    """Install the chart, as `docs/how-to/install.md` tells, for all tests that want it."""
    installed = Release(cluster)
    try:
        installed.begin()
        yield installed
    finally:
        installed.end()
        ours = ("--wait=false", "--ignore-not-found", faults.NAMESPACE)
        cluster.kubectl("delete", "namespace", *ours)


@pytest.fixture
def whole(release: Release) -> Release:
    """Wait until what earlier tests have hurt has all its pods again."""
    release.until_whole()
    return release


@pytest.fixture
def space(whole: Release) -> Iterator[Space]:
    """Take the queue that has one worker; its jobs are gone afterwards."""
    taken = Space(whole.cluster, NAMESPACE)
    yield taken
    taken.clear()


@pytest.fixture
def last_use(release: Release) -> Release:
    """Take the release away from all others: who asks for this runs last."""
    return release


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run first what needs no release, and last what ends it."""
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    wanted = set(getattr(item, "fixturenames", ()))
    return len(wanted & {"release", "last_use"})
