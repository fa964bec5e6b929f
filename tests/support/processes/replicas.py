"""Several operators for one namespace."""

from contextlib import ExitStack
from pathlib import Path

from support.driven.jobs import NUMBERS
from support.processes.operator import QUICK, OperatorProcess
from support.processes.workers import WorkerNamespace


class Replicas:
    """Starts operators for one namespace and stops them all in the end."""

    def __init__(self, kubeconfig: Path, ns: WorkerNamespace, stack: ExitStack) -> None:
        self._kubeconfig = kubeconfig
        self._ns = ns
        self._stack = stack

    def start(self, *options: str, module: str = "") -> OperatorProcess:
        """Start one and wait until it has listed all jobs; `module` runs in the command's stead."""
        namespace = self._ns.namespace
        home = (f"--namespace={namespace}", f"--lease-namespace={namespace}")
        log = self._ns.folder / f"operator-{next(NUMBERS)}.log"
        process = OperatorProcess(self._kubeconfig, log, *QUICK, *home, *options)
        if module:
            process.run_module(module, {})
        return self._stack.enter_context(process).until_ready()
