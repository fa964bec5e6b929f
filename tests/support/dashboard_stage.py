"""Everything that the dashboard shows, for real: a gateway with tokens, an operator, a worker."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from asyncjob_dev.controlplane import ControlPlane
from support.api import Client
from support.gateway import GatewayProcess, caller, gateway_kubeconfig
from support.identities import Space
from support.operator import OperatorProcess
from support.workers import Field, field_on

OPERATOR = ("--backoff-initial=0.2", "--backoff-max=2", "--no-retention")


@dataclass(frozen=True)
class Stage:
    """A namespace with all of it, and the tokens of those who look at it."""

    field: Field
    space: Space
    gateway: GatewayProcess
    admin_token: str
    viewer_token: str

    def url(self, path: str) -> str:
        """Return the address of a page of the dashboard."""
        return f"{self.gateway.url}/dashboard{path}"


@contextmanager
def stage_on(plane: ControlPlane, admin: Client, folder: Path) -> Iterator[Stage]:
    """Set it up; everything is stopped at the end."""
    with (
        OperatorProcess(plane.kubeconfig, folder / "operator.log", *OPERATOR) as operator,
        field_on(plane, folder) as field,
    ):
        space = Space(field.namespace, admin)
        kubeconfig = gateway_kubeconfig(plane, space, folder / "gateway.kubeconfig")
        log = folder / "gateway.log"
        log.touch()
        with GatewayProcess(kubeconfig, log) as gateway:
            tokens = [caller(space, who, f"asyncjob-job-{who}") for who in ("admin", "viewer")]
            field.worker("worker-0", "--concurrency=8", app="support.dashboard_app:app")
            operator.until_leading()
            yield Stage(field, space, gateway.until_ready(), *tokens)
