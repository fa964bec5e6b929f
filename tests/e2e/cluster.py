"""A cluster as a test sees it: kubectl, helm, manifests, and waiting for what should be."""

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any, TypeVar

from asyncjob_dev.binaries import resolve
from asyncjob_dev.errors import KubectlError

T = TypeVar("T")

LOOK_SECONDS = 0.2
COMMAND_SECONDS = 120.0
MANIFESTS = Path(__file__).parent / "manifests"


def until(probe: Callable[[], T | None], within: float, what: Callable[[], str]) -> T:
    """Return the first true answer of the probe."""
    give_up_at = time.monotonic() + within
    while not (answer := probe()):
        assert time.monotonic() < give_up_at, f"not within {within} s: {what()}"
        time.sleep(LOOK_SECONDS)
    return answer


@dataclass(frozen=True)
class Cluster:
    """The administrator's eyes and hands."""

    kubeconfig: Path
    folder: Path
    images: Mapping[str, str]
    """What pods call the images `worker` and `operator`."""

    def kubectl(
        self,
        *arguments: str,
        input: str | None = None,  # noqa: A002 - as subprocess.run calls it
        within: float = COMMAND_SECONDS,
    ) -> str:
        """Run kubectl and return what it says; raises KubectlError."""
        done = self._run([*self._kubectl, *arguments], input, within)
        if done.returncode:
            raise KubectlError(arguments, done.returncode, done.stderr)
        return done.stdout

    @contextmanager
    def logs_of(self, namespace: str, pod: str) -> Iterator[Callable[[], str]]:
        """Follow what a pod writes; the result waits for its end and returns all of it."""
        command = [*self._kubectl, "logs", "--follow", pod, f"--namespace={namespace}"]
        with subprocess.Popen(
            command, env=self._environment, stdout=subprocess.PIPE, text=True
        ) as following:
            try:
                yield lambda: following.communicate(timeout=COMMAND_SECONDS)[0]
            finally:
                following.kill()

    @contextmanager
    def running(self, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        """Run kubectl beside the test, such as for a watch; ended at the end."""
        command = [*self._kubectl, *arguments]
        with subprocess.Popen(command, env=self._environment, stdout=subprocess.PIPE) as process:
            try:
                yield process
            finally:
                process.kill()

    def helm(self, *arguments: str, within: float = 600.0) -> str:
        """Run helm, with folders of its own, and return what it says."""
        done = self._run([str(resolve("helm").path), *arguments], None, within)
        assert done.returncode == 0, f"helm {' '.join(arguments)}: {done.stderr or done.stdout}"
        return done.stdout

    def get(self, namespace: str, kind: str, name: str) -> dict[str, Any]:
        """Return an object."""
        answer = self.kubectl("get", kind, name, f"--namespace={namespace}", "--output=json")
        found: dict[str, Any] = json.loads(answer)
        return found

    def items(self, namespace: str, kind: str, selector: str = "") -> list[dict[str, Any]]:
        """Return the objects of a kind that match a selector of labels."""
        asked = ("get", kind, f"--namespace={namespace}", f"--selector={selector}", "--output=json")
        found: list[dict[str, Any]] = json.loads(self.kubectl(*asked))["items"]
        return found

    def apply(self, manifest: str, namespace: str = "", **values: str) -> None:
        """Apply a file of `manifests`, with the images and values put in for their $names."""
        text = (MANIFESTS / f"{manifest}.yaml").read_text(encoding="utf-8")
        names = {f"{name}_image": image for name, image in self.images.items()}
        filled = Template(text).substitute(names, namespace=namespace, **values)
        where = [f"--namespace={namespace}"] if namespace else []
        self.kubectl("apply", *where, "--filename=-", input=filled)

    def exec(self, namespace: str, pod: str, *command: str) -> str:
        """Run a program in a pod's first container and return what it says."""
        return self.kubectl("exec", pod, f"--namespace={namespace}", "--", *command)

    def until_available(self, namespace: str, deployment: str, within: int = 120) -> None:
        """Wait until all pods of a Deployment are ready; says what its pods are if they are not."""
        try:
            self.kubectl(
                "rollout",
                "status",
                f"--namespace={namespace}",
                f"--timeout={within}s",
                f"deployment/{deployment}",
                within=within + COMMAND_SECONDS,
            )
        except KubectlError as error:
            raise AssertionError(f"{error}\n{self.describe(namespace)}") from error

    def describe(self, namespace: str) -> str:
        """Return pods and events of a namespace, for messages."""
        return self.kubectl("describe", "pods", f"--namespace={namespace}") + self.kubectl(
            "get", "events", f"--namespace={namespace}"
        )

    @property
    def _kubectl(self) -> list[str]:
        return [str(resolve("kubectl").path), f"--cache-dir={self.folder / 'kubectl-cache'}"]

    @property
    def _environment(self) -> dict[str, str]:
        homes = ("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME")
        own = {name: str(self.folder / name.lower()) for name in homes}
        return {**os.environ, **own, "KUBECONFIG": str(self.kubeconfig)}

    def _run(
        self, command: list[str], said: str | None, within: float
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            env=self._environment,
            input=said,
            capture_output=True,
            text=True,
            timeout=within,
            check=False,
        )
