"""Products, formats and kinds are spelled in the documentation as they spell themselves."""

import re
from collections.abc import Iterator

import pytest

from support.docs.blocks import ROOT, pages, prose_of

NAMES = (
    *("Kubernetes", "Prometheus", "Grafana", "GitHub", "GitOps", "kopf", "kubectl", "kubelet"),
    *("etcd", "containerd", "PostgreSQL", "RabbitMQ", "Redis", "Celery", "Sidekiq", "Kueue"),
    *("KEDA", "Hatchet", "Procrastinate", "OpenTelemetry", "CycloneDX", "OpenAPI", "FastAPI"),
    *("Pydantic", "Python", "Docker", "Podman", "Helm", "Chromium", "Debian", "Linux", "macOS"),
    *("JSON", "YAML", "HTTP", "HTTPS", "TLS", "RBAC", "REST API", "UTC", "UTF-8", "SHA-256"),
    *("SIGTERM", "SIGKILL", "ConfigMap", "ServiceAccount", "ClusterRole", "NetworkPolicy"),
    *("AsyncQueue", "AsyncCronJob", "DeadLetter", "Argo CD", "Argo Workflows"),
    *("JavaScript", "TypeScript", "OAuth", "IPv4", "IPv6", "OIDC", "CPython", "uvloop", "systemd"),
)
"""Names that have one spelling; a plural `s` may follow."""

ALSO_LOWER = {
    *("JSON", "YAML", "HTTP", "HTTPS", "KEDA", "Pydantic", "Redis", "Python", "Procrastinate"),
    *("Docker", "Podman", "Helm"),
    *("ConfigMap", "AsyncQueue", "AsyncCronJob"),
}
"""Names that are a value, a package, a program or a resource in lower case."""

EXCEPTIONS = {"docs/explanation/performance.md": {"kubernetes: Kubernetes"}}
"""What pages may have: here the key of something measured."""

SPELLINGS = {name.lower(): name for name in NAMES}
ANY_NAME = re.compile(
    rf"(?<![\w./@-])({'|'.join(map(re.escape, NAMES))})(?=s?(?![\w/@-]|\.\w))", re.IGNORECASE
)
OTHER_NAMES = {
    "Postgres": "PostgreSQL",
    "K8s": "Kubernetes",
    "Github": "GitHub",
    "Async Job": "AsyncJob",
    "Asyncjob": "AsyncJob, or asyncjob for the project",
    "dead-letter queue": "dead letters",
}
"""What is not written, and what instead."""


def misspelled(text: str) -> Iterator[str]:
    """Yield what is not spelled as it should be in the prose of a page."""
    prose = "\n".join(prose_of(text))
    for found in ANY_NAME.finditer(prose):
        wanted = SPELLINGS[found[1].lower()]
        if found[1] != wanted and not (wanted in ALSO_LOWER and found[1].islower()):
            yield f"{found[1]}: {wanted}"
    for wrong, right in OTHER_NAMES.items():
        if re.search(rf"\b{wrong}\b", prose):
            yield f"{wrong}: {right}"


def test_names_are_spelled_as_they_spell_themselves() -> None:
    found = {
        page.relative_to(ROOT).as_posix(): set(misspelled(page.read_text(encoding="utf-8")))
        for page in pages()
    }
    assert len(found) > 100
    assert {page: names for page, names in found.items() if names} == EXCEPTIONS


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("On kubernetes, with Kopf.", ["kubernetes: Kubernetes", "Kopf: kopf"]),
        ("`kubernetes`, [x](kubernetes.md)", []),
        ("```yaml\nkind: configmap\n```\n", []),
        ("Configmaps, configmaps", ["Configmap: ConfigMap"]),
        ("A Github action", ["Github: GitHub", "Github: GitHub"]),
    ],
)
def test_a_wrong_spelling_is_found_in_prose_alone(text: str, names: list[str]) -> None:
    assert list(misspelled(text)) == names
