"""The chart as Helm renders it: objects by kind and name, or the text."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[3]
CHART = ROOT / "charts/asyncjob"
SCENARIOS = sorted((CHART / "ci").glob("*.yaml"))
RELEASE = "asyncjob"
NAMESPACE = "jobs"
Object = Mapping[str, Any]


class RenderError(Exception):
    """Helm refused; the text is what it said."""


MUTATING = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"
"""A kind that API servers know from Kubernetes 1.36 on."""


@dataclass(frozen=True)
class Rendered:
    """What Helm made of the values."""

    text: str

    @cached_property
    def objects(self) -> list[Object]:
        """Return all objects, hooks too, in Helm's order."""
        loaded = yaml.load_all(self.text, Loader=yaml.CSafeLoader)
        return [item for item in loaded if item]

    def of(self, kind: str) -> list[Object]:
        """Return the objects of a kind."""
        return [item for item in self.objects if item["kind"] == kind]

    def one(self, kind: str, name: str) -> Object:
        """Return the one object of that kind and name."""
        (found,) = [item for item in self.of(kind) if item["metadata"]["name"] == name]
        return found

    def pods(self) -> dict[str, Object]:
        """Return each pod's metadata and spec, by the name of what makes it."""
        makers = [*self.of("Deployment"), *self.of("Job")]
        templates = {item["metadata"]["name"]: item["spec"]["template"] for item in makers}
        return {**templates, **{item["metadata"]["name"]: item for item in self.of("Pod")}}


@dataclass(frozen=True)
class Helm:
    """The pinned Helm; it keeps its own files in `home` and sees no cluster but the one named."""

    program: Path
    home: Path
    chart: Path = CHART

    def run(self, *arguments: str, kubeconfig: Path | None = None) -> str:
        """Return what Helm printed; raises RenderError with what it complained about."""
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "GOGC": "off",  # it ends before collecting would pay
            "KUBECONFIG": str(kubeconfig or os.devnull),
        }
        done = subprocess.run(
            [str(self.program), *arguments],
            capture_output=True,
            text=True,
            env=environ,
            timeout=120,
            check=False,
        )
        if done.returncode:
            raise RenderError(done.stderr + done.stdout)
        return done.stdout

    def lint(self, scenario: Path) -> str:
        """Return what the linter says; warnings are errors."""
        return self.run("lint", "--strict", str(self.chart), f"--values={scenario}")

    def render(
        self,
        *scenarios: Path,
        values: Mapping[str, Any] | None = None,
        api_versions: Sequence[str] = (),
    ) -> Rendered:
        """Return what comes of the chart with the values of scenarios and, over them, `values`."""
        files = [f"--values={path}" for path in scenarios]
        more = [f"--set-json={key}={json.dumps(value)}" for key, value in (values or {}).items()]
        known = [f"--api-versions={name}" for name in api_versions]
        where = [RELEASE, str(self.chart), f"--namespace={NAMESPACE}"]
        return Rendered(self.run("template", *where, *files, *more, *known))


def scenario(name: str) -> Path:
    """Return the file of one of the chart's scenarios."""
    return CHART / f"ci/{name}.yaml"


def container(pod: Object, name: str) -> Object:
    """Return a pod's container of that name."""
    found: Object
    (found,) = [item for item in pod["spec"]["containers"] if item["name"] == name]
    return found
