"""Control planes for cells: one that they share, and fresh ones for faults of the store."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import yaml

from asyncjob.names import GROUP
from asyncjob_chaos.tools.disks import SmallDisk, small_disk
from asyncjob_dev.controlplane import ControlPlane, ControlPlaneOptions
from asyncjob_dev.environment.components import install

READY_SECONDS: Final = 180.0
AUDIT_POLICY: Final[dict[str, Any]] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "omitManagedFields": True,
    "rules": [
        {
            "level": "RequestResponse",
            "verbs": ["create", "update", "patch", "delete"],
            "resources": [{"group": GROUP, "resources": ["asyncjobs", "asyncjobs/status"]}],
        },
        {
            "level": "Metadata",
            "verbs": ["update", "patch"],
            "resources": [{"group": GROUP, "resources": ["asyncarrays/status"]}],
        },
        {"level": "None"},
    ],
}


@dataclass(frozen=True, kw_only=True)
class PlaneNeeds:
    """What a fault needs of its control plane."""

    alone: bool = False
    """Whether it gets one of its own."""

    audit_log: bool = True
    quota_mib: int | None = None
    """Room that etcd allows itself."""

    disk_mib: int | None = None
    """Size of etcd's disk, where it has a small one."""


@dataclass(frozen=True)
class PreparedPlane:
    """A running control plane, and what was put beside it."""

    plane: ControlPlane
    audit_log: Path | None
    disk: SmallDisk | None


class Planes:
    """Hands out control planes; a context manager that stops them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number = 0
        self._shared: PreparedPlane | None = None
        self._running = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    @contextmanager
    def of(self, needs: PlaneNeeds) -> Iterator[PreparedPlane]:
        """Give a control plane for one cell; a shared one that the cell has broken is replaced."""
        if needs.alone:
            with self._start(needs) as prepared:
                yield prepared
            return
        if self._shared is None:
            self._shared = self._running.enter_context(self._start(needs))
        prepared = self._shared
        try:
            yield prepared
        except BaseException:
            self._forget()
            raise
        if not prepared.plane.api.answers("/readyz"):
            self._forget()

    def _forget(self) -> None:
        self._shared = None
        self._running.close()

    @contextmanager
    def _start(self, needs: PlaneNeeds) -> Iterator[PreparedPlane]:
        self._number += 1
        folder = self._folder / f"plane-{self._number}"
        folder.mkdir()
        with ExitStack() as stack:
            disk = None
            flags: tuple[str, ...] = ()
            if needs.disk_mib:
                disk = stack.enter_context(small_disk(folder / "disk", needs.disk_mib))
                flags = (f"--data-dir={disk.path / 'etcd'}",)
            log = folder / "audit.log" if needs.audit_log else None
            options = ControlPlaneOptions(
                with_controller_manager=False,
                etcd_flags=flags,
                apiserver_flags=_audit_flags(folder, log),
                quota_bytes=(needs.quota_mib or 8 << 10) << 20,
                ready_within=READY_SECONDS,
            )
            plane = stack.enter_context(ControlPlane(options))
            install(plane)
            yield PreparedPlane(plane, log, disk)


def _audit_flags(folder: Path, log: Path | None) -> tuple[str, ...]:
    if log is None:
        return ()
    policy = folder / "audit-policy.yaml"
    policy.write_text(yaml.safe_dump(AUDIT_POLICY))
    return (f"--audit-policy-file={policy}", f"--audit-log-path={log}")
