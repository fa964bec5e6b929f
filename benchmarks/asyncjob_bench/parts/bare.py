"""What the API server takes of custom resources at most: the same three writes, without any law.

They go to a custom resource of its own, whose spec and status hold anything: without schema,
defaults, columns, selectors or policies, and with managedFields as small as can be. What lies
between this and the raw ceiling is the price of the laws.
"""

from dataclasses import replace
from typing import Final

from asyncjob.names import API_VERSION, JOB_KIND, JOBS
from asyncjob_bench.ground.generator import generate, whole_life
from asyncjob_bench.ground.roles import RBAC
from asyncjob_bench.ground.site import Site
from asyncjob_bench.ground.space import Space
from asyncjob_bench.ground.templates import Step
from asyncjob_bench.parts.part import Numbers, PartContext
from asyncjob_bench.parts.raw import CONNECTIONS, pod_tokens
from asyncjob_dev.api import Api, Object
from asyncjob_dev.errors import ApiError
from asyncjob_dev.readiness import wait_until

GROUP: Final = "bare.bench.local"
VERSION: Final = "v1"
CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
ROLE: Final = "bare"
WITHIN_SECONDS: Final = 30.0


def measure_bare(bench: PartContext) -> Numbers:
    """Return the ceiling of custom resources that nobody checks."""
    scale = bench.scale
    with bench.site.space("bare") as space:
        _prepare(bench.site, space)
        pods, steps = pod_tokens(space, scale.workers), [_bare_step(it) for it in whole_life(space)]
        generate(space, steps, scale.warm_up, workers=pods, prefix="warm-up-")
        report = generate(space, steps, scale.jobs, workers=pods, connections=CONNECTIONS)
    return {"bare_ceiling_jobs_s": scale.jobs / report.seconds}


def _bare_step(step: Step) -> Step:
    ours, theirs = API_VERSION, f"{GROUP}/{VERSION}"
    return replace(
        step,
        path=step.path.replace(f"/apis/{ours}/", f"/apis/{theirs}/"),
        body=step.body.replace(f'"{ours}"', f'"{theirs}"'),
    )


def _prepare(site: Site, space: Space) -> None:
    """Define the resource, unless an earlier round has, and let this namespace's accounts write."""
    try:
        space.api.create(CRDS, _definition())
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise
    path = f"/apis/{RBAC}/v1/namespaces/{space.name}"
    space.api.create(f"{path}/roles", _role())
    space.api.create(f"{path}/rolebindings", _binding(space.name))
    wait_until(lambda: _served(space.api), "the bare resource", within=WITHIN_SECONDS)
    wait_until(lambda: _allowed(space), "the right to write it", within=WITHIN_SECONDS)
    site.await_collector(GROUP)


def _definition() -> Object:
    anything = {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "x-kubernetes-map-type": "atomic",
    }
    schema = {"type": "object", "properties": {"spec": anything, "status": anything}}
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    names = {"plural": JOBS, "singular": "asyncjob", "kind": JOB_KIND}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{JOBS}.{GROUP}"},
        "spec": {"group": GROUP, "names": names, "scope": "Namespaced", "versions": [version]},
    }


def _role() -> Object:
    rule = {"apiGroups": [GROUP], "resources": ["*"], "verbs": ["*"]}
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "Role",
        "metadata": {"name": ROLE},
        "rules": [rule],
    }


def _binding(namespace: str) -> Object:
    everybody = {"kind": "Group", "name": f"system:serviceaccounts:{namespace}", "apiGroup": RBAC}
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": ROLE},
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": ROLE},
        "subjects": [everybody],
    }


def _served(api: Api) -> bool:
    try:
        api.get(f"/apis/{GROUP}/{VERSION}/{JOBS}")
    except ApiError:
        return False
    return True


def _allowed(space: Space) -> bool:
    asked = {"group": GROUP, "resource": JOBS, "verb": "create", "namespace": space.name}
    group = f"system:serviceaccounts:{space.name}"
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"groups": [group], "user": "anybody", "resourceAttributes": asked},
    }
    return bool(space.api.create(REVIEWS, review)["status"]["allowed"])
