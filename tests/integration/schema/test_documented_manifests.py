"""Each manifest of the documentation is one that a real API server takes, by field and by value."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
import yaml

from asyncjob_dev.controlplane import ControlPlane
from support.docs.blocks import CodeBlock, all_blocks
from support.docs.manifests import documents_of

pytestmark = pytest.mark.integration

NOT_SERVED = {"audit.k8s.io/v1": "is read by the API server: tests/integration/audit starts it so"}


def in_a_container(fields: Any) -> Any:
    volumes = [{"name": one["name"], "emptyDir": {}} for one in fields.get("volumeMounts", [])]
    containers = [{"name": "part", "image": "image", **fields}]
    spec = {"containers": containers, "volumes": volumes}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "part"}, "spec": spec}


PARTS: Mapping[tuple[str, str], Callable[[Any], Any]] = {
    ("docs/how-to/build-your-image.md", "securityContext:"): in_a_container,
    ("docs/how-to/monitor.md", "env:"): in_a_container,
    ("docs/how-to/large-payloads-and-results.md", "rules:"): lambda fields: {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "part"},
        **fields,
    },
}
"""Parts of manifests, and what makes a whole one of them."""


def documents() -> Iterator[tuple[CodeBlock, Any]]:
    """Yield every manifest that a page has, and the parts that are made whole."""
    for block in all_blocks():
        for document in documents_of(block):
            if (block.page, block.first) in PARTS:
                yield block, PARTS[block.page, block.first](document)
            elif isinstance(document, dict) and {"apiVersion", "kind"} <= set(document):
                yield block, document


@pytest.mark.parametrize(("block", "document"), list(documents()), ids=lambda one: str(one)[:60])
def test_the_api_server_would_create_it(
    control_plane: ControlPlane, block: CodeBlock, document: Any
) -> None:
    if document["apiVersion"] in NOT_SERVED:
        return
    options = ("--dry-run=server", "--validate=strict", "--filename=-")
    text = yaml.safe_dump(document)
    said = control_plane.kubectl("create", *options, input=text, check=False)
    assert said.returncode == 0, f"{block}: {said.stderr}"


def test_there_are_manifests_and_every_part_is_among_them() -> None:
    found = [(block.page, block.first) for block, _ in documents()]
    assert len(found) > 15
    assert set(PARTS) <= set(found)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [({"replica": 1}, 'unknown field "spec.replica"'), ({"replicas": -1}, "must be greater than")],
)
def test_a_wrong_manifest_is_refused(
    control_plane: ControlPlane, change: dict[str, int], complaint: str
) -> None:
    found = next(one for _, one in documents() if one["kind"] == "Deployment")
    found["spec"] |= change
    options = ("--dry-run=server", "--validate=strict", "--filename=-")
    text = yaml.safe_dump(found)
    said = control_plane.kubectl("create", *options, input=text, check=False)
    assert said.returncode
    assert complaint in said.stderr
