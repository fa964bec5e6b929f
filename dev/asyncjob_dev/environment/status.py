"""What people read about a running environment."""

from pathlib import Path

from asyncjob_dev.environment.background import GATEWAY_PORT
from asyncjob_dev.environment.layout import EnvironmentPaths
from asyncjob_dev.environment.state import RunningPart, load_state

GUIDE = """
Use it:
  export KUBECONFIG={kubeconfig} PATH={bin}:$PATH
  kubectl apply -f examples/flaky-call.yaml
  kubectl get asyncjobs --watch
  kubectl get asyncjob flaky-call -o yaml
  curl {gateway}/api/v1/jobs
Logs: {logs}/  (tail -f {logs}/worker-1.log)
Stop: make down
"""


def status_table(layout: EnvironmentPaths, here: Path) -> str:
    """Return what runs, a line each; paths as seen from the folder `here`."""
    state = load_state(layout.state)
    if state is None or not state.parts:
        return "it is starting or stopping"
    lines = [f"{'WHAT':<26}{'PROCESS':<10}{'RESTARTS':<10}LOG"]
    lines += [
        _status_line(part, short_path(layout.logs / f"{part.name}.log", here))
        for part in state.parts
    ]
    lines.append(f"\nAPI server: https://127.0.0.1:{state.port}   handlers: {state.app}")
    lines.append(f"Gateway:    http://127.0.0.1:{state.gateway_port}   open to this machine only")
    return "\n".join(lines)


def usage_guide(layout: EnvironmentPaths, here: Path) -> str:
    """Return how to use it from the folder `here`."""
    state = load_state(layout.state)
    return GUIDE.format(
        kubeconfig=short_path(layout.kubeconfig, here, "$PWD/"),
        bin=short_path(layout.bin, here, "$PWD/"),
        logs=short_path(layout.logs, here),
        gateway=f"http://127.0.0.1:{state.gateway_port if state else GATEWAY_PORT}",
    ).rstrip()


def short_path(path: Path, here: Path, prefix: str = "") -> str:
    """Return the path as short as it can be typed; `prefix` makes a short one absolute again."""
    return f"{prefix}{path.relative_to(here)}" if path.is_relative_to(here) else str(path)


def _status_line(part: RunningPart, log: str) -> str:
    pid = "ended" if part.pid is None else str(part.pid)
    return f"{part.name:<26}{pid:<10}{part.restarts:<10}{log}"
