"""The worker's image, built once, and a control plane for its containers."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from asyncjob_dev.cache_folder import cache_dir
from asyncjob_dev.controlplane import ControlPlane
from asyncjob_dev.images import BuildRequest, Engine, build_image, buildah_in
from support.cluster.installation import install
from support.processes.containers import Image, image_of, missing_programs
from support.processes.workers import ROOT, WorkerNamespace, worker_namespace

TAG = "localhost/asyncjob-worker:under-test"


@pytest.fixture(scope="session")
def engine() -> Engine:
    """Take buildah, with images of its own in the cache."""
    missing = missing_programs()
    assert not missing, f"missing: {missing} (Debian: apt-get install buildah debootstrap runc)"
    assert os.geteuid() == 0, "containers with the host's network are run by root here"
    return buildah_in(cache_dir(os.environ) / "images")


@pytest.fixture(scope="session")
def tag(engine: Engine) -> str:
    """Build the image; unchanged layers come from the cache."""
    build_image(engine, BuildRequest(ROOT / "worker-image" / "Dockerfile", TAG), os.environ)
    return TAG


@pytest.fixture(scope="session")
def image(engine: Engine, tag: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    with image_of(engine, tag, tmp_path_factory.mktemp("containers")) as laid_out:
        yield laid_out


@pytest.fixture(scope="session")
def plane() -> Iterator[ControlPlane]:
    with ControlPlane() as running:
        install(running)
        yield running


@pytest.fixture
def ns(plane: ControlPlane, tmp_path: Path) -> Iterator[WorkerNamespace]:
    with worker_namespace(plane, tmp_path) as prepared:
        yield prepared
