"""An API server with an audit log, and a busy time on it, recorded for all tests."""

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
import yaml

from asyncjob_dev.controlplane import ControlPlane, ControlPlaneOptions
from support.cluster.installation import install
from support.driven.audit_story import AUDIT_POLICY, Recorder, Recording, Story
from support.driven.jobs import until
from support.processes.operator import operator_kubeconfig
from support.processes.workers import worker_namespace


@pytest.fixture(scope="package")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audit")


@pytest.fixture(scope="package")
def plane(folder: Path) -> Iterator[ControlPlane]:
    policy = folder / "policy.yaml"
    policy.write_text(yaml.safe_dump(AUDIT_POLICY))
    flags = (f"--audit-policy-file={policy}", f"--audit-log-path={folder / 'audit.log'}")
    with ControlPlane(ControlPlaneOptions(apiserver_flags=flags)) as running:
        install(running)
        yield running


@pytest.fixture(scope="package")
def recording(plane: ControlPlane, folder: Path) -> Recording:
    """Record the whole story, once for all tests."""
    history = folder / "history.jsonl.gz"
    with ExitStack() as stack, worker_namespace(plane, folder) as ns:
        recorder = stack.enter_context(Recorder(ns, history))
        story = Story(ns, operator_kubeconfig(plane, folder / "operator"), stack)
        story.tell(history)
        until(partial(story.is_recorded, history), 60, "the recorder", every=1.0)
        recorder.stop()
    records = sorted(folder.glob("handlers-*.jsonl"))
    return Recording(history, folder / "audit.log", records, recorder.printed)
