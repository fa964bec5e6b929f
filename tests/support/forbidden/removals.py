"""Ways to have a job removed, or kept, by who may patch but not delete it: a gateway."""

from typing import Any, Final

from asyncjob.names import JOBS, QUEUES, collection
from support.api import Answer, Client
from support.builders import queue
from support.forbidden.case import NUMBERS, Case, Scene

_OWNER: Final = {
    "ownerReferences": [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "no-such-uid"}
    ]
}
_FINALIZER: Final = {"finalizers": ["example.org/kept"]}


def _gateway(scene: Scene) -> Client:
    name = f"gateway-{next(NUMBERS)}"
    scene.space.account(name)
    scene.space.bind(name, "asyncjob-gateway")
    return scene.space.as_account(name)


def _on_job(law: str, title: str, metadata: dict[str, Any]) -> Case:
    def attempt(scene: Scene) -> Answer:
        path = scene.life().path
        return scene.acting(_gateway(scene)).merge(path, {"metadata": metadata})

    return Case(law, f"{title} on {JOBS}", attempt)


def _on_queue(law: str, title: str, metadata: dict[str, Any]) -> Case:
    def attempt(scene: Scene) -> Answer:
        name, queues = f"queue-{next(NUMBERS)}", collection(scene.space.name, QUEUES)
        scene.space.admin.create(queues, queue(name)).object()
        who = scene.acting(_gateway(scene))
        return who.merge(f"{queues}/{name}", {"metadata": metadata})

    return Case(law, f"{title} on {QUEUES}", attempt)


REMOVALS: Final = tuple(
    case
    for law, title, metadata in (
        ("removal.owners", "an owner that is gone", _OWNER),
        ("removal.finalizers", "a finalizer", _FINALIZER),
    )
    for case in (_on_job(law, title, metadata), _on_queue(law, title, metadata))
)
