"""The pure parts of a control plane: command lines, files, locks."""

import errno
import os
import stat
from pathlib import Path

import pytest
import yaml

from asyncjob_dev.api import write_kubeconfig
from asyncjob_dev.controlplane import ControlPlane, ControlPlaneOptions, datadir, processes
from asyncjob_dev.controlplane.options import ControlPlanePaths
from asyncjob_dev.controlplane.plane import ensure_credentials
from asyncjob_dev.errors import (
    DataDirInUseError,
    DevError,
    FolderUnusableError,
    TemporaryFolderError,
)


@pytest.fixture
def layout(tmp_path: Path) -> ControlPlanePaths:
    made = ControlPlanePaths(tmp_path)
    made.make()
    return made


def test_everything_listens_on_the_loopback_address_only(layout: ControlPlanePaths) -> None:
    flags = processes.etcd_flags(ControlPlaneOptions(), layout, "dev", 1, 2)
    flags += processes.apiserver_flags(ControlPlaneOptions(), layout, 3, 1)
    flags += processes.controller_manager_flags(ControlPlaneOptions(), layout)
    pairs = [flag.removeprefix("--").split("=", 1) for flag in flags if "=" in flag]
    addresses = [value for name, value in pairs if "address" in name or "urls" in name]
    assert len(addresses) == 6
    assert all("127.0.0.1" in address for address in addresses)
    assert "--secure-port=0" in flags


def test_controllers_have_accounts_of_their_own_as_on_real_clusters(
    layout: ControlPlanePaths,
) -> None:
    flags = processes.controller_manager_flags(ControlPlaneOptions(), layout)
    assert "--use-service-account-credentials" in flags


def test_extra_flags_come_last_so_that_they_win(layout: ControlPlanePaths) -> None:
    options = ControlPlaneOptions(apiserver_flags=("--v=4",), etcd_flags=("--x",))
    assert processes.apiserver_flags(options, layout, 3, 1)[-1] == "--v=4"
    assert processes.etcd_flags(options, layout, "dev", 1, 2)[-1] == "--x"


def test_data_is_not_synced_to_disk_unless_asked(layout: ControlPlanePaths) -> None:
    assert "--unsafe-no-fsync" in processes.etcd_flags(ControlPlaneOptions(), layout, "dev", 1, 2)
    assert "--unsafe-no-fsync" not in processes.etcd_flags(
        ControlPlaneOptions(fsync=True), layout, "dev", 1, 2
    )


def test_own_audiences_keep_the_api_servers(layout: ControlPlanePaths) -> None:
    flags = processes.apiserver_flags(ControlPlaneOptions(audiences=("gateway",)), layout, 3, 1)
    assert f"--api-audiences={ControlPlaneOptions().issuer},gateway" in flags


def test_pods_need_no_default_service_account_without_a_controller_manager(
    layout: ControlPlanePaths,
) -> None:
    without = ControlPlaneOptions(with_controller_manager=False)
    flag = "--disable-admission-plugins=ServiceAccount"
    assert flag in processes.apiserver_flags(without, layout, 3, 1)
    assert flag not in processes.apiserver_flags(ControlPlaneOptions(), layout, 3, 1)


def test_pods_on_nodes_that_do_not_exist_are_not_collected(layout: ControlPlanePaths) -> None:
    flags = " ".join(processes.controller_manager_flags(ControlPlaneOptions(), layout))
    assert "pod-garbage-collector" not in flags
    assert "*" not in flags


def test_only_throwaway_data_is_stopped_without_patience() -> None:
    assert ControlPlaneOptions().effective_grace == 0
    assert ControlPlaneOptions(data_dir=Path("/x")).effective_grace > 0
    assert ControlPlaneOptions(grace=3).effective_grace == 3


def test_credentials_are_private_and_made_once(layout: ControlPlanePaths) -> None:
    token = ensure_credentials(layout)
    assert len(token) >= 32
    assert ensure_credentials(layout) == token
    for path in (layout.signing_key, layout.tokens):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_kubeconfig_carries_the_ca_and_is_private(tmp_path: Path) -> None:
    (tmp_path / "ca").write_text("certificate")
    path = tmp_path / "kubeconfig"
    write_kubeconfig(
        path, url="https://127.0.0.1:1", ca_file=tmp_path / "ca", user={"token": "secret"}
    )
    document = yaml.safe_load(path.read_text())
    assert document["clusters"][0]["cluster"]["certificate-authority-data"] == "Y2VydGlmaWNhdGU="
    assert document["users"][0]["user"] == {"token": "secret"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_data_directory_serves_one_control_plane_at_a_time(tmp_path: Path) -> None:
    held = datadir.claim(tmp_path / "data")
    with pytest.raises(DataDirInUseError, match="in use by another"):
        datadir.claim(tmp_path / "data")
    held.release()
    datadir.claim(tmp_path / "data").release()
    assert (tmp_path / "data").is_dir()


def test_a_temporary_directory_goes_when_released(tmp_path: Path) -> None:
    held = datadir.claim_temporary(tmp_path)
    assert held.path.is_dir()
    held.release()
    assert list(tmp_path.iterdir()) == []


def test_what_the_dead_left_behind_is_swept_and_what_is_in_use_is_not(tmp_path: Path) -> None:
    living = datadir.claim_temporary(tmp_path)
    dead = tmp_path / f"{datadir.PREFIX}dead"
    dead.mkdir()
    (dead / datadir.LOCK).touch()
    stranger = tmp_path / f"{datadir.PREFIX}stranger"
    stranger.mkdir()
    datadir.remove_stale(tmp_path)
    assert living.path.exists()
    assert not dead.exists()
    assert stranger.exists()
    living.release()


def left_behind(parent: Path, name: str) -> Path:
    folder = parent / f"{datadir.PREFIX}{name}"
    folder.mkdir()
    (folder / datadir.LOCK).touch()
    return folder


def test_what_other_users_left_behind_is_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign = left_behind(tmp_path, "foreign")
    monkeypatch.setattr("os.getuid", lambda: foreign.stat().st_uid + 1)
    datadir.remove_stale(tmp_path)
    assert foreign.exists()


def test_a_folder_that_cannot_be_looked_at_stops_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = left_behind(tmp_path, "closed")
    dead = left_behind(tmp_path, "dead")
    exists, lstat = Path.exists, Path.lstat

    def refuse(path: Path) -> None:
        if closed in (path, *path.parents):
            raise PermissionError(errno.EACCES, "Permission denied")

    def guarded_exists(path: Path) -> bool:
        refuse(path)
        return exists(path)

    def guarded_lstat(path: Path) -> os.stat_result:
        refuse(path)
        return lstat(path)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "exists", guarded_exists)
        patched.setattr(Path, "lstat", guarded_lstat)
        datadir.claim_temporary(tmp_path).release()
    assert closed.exists()
    assert not dead.exists()


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").touch()
    folder = tmp_path / f"{datadir.PREFIX}trap"
    folder.mkdir()
    (folder / datadir.LOCK).symlink_to(tmp_path / "precious")
    datadir.remove_stale(tmp_path)
    assert folder.exists()
    with pytest.raises(FolderUnusableError):
        datadir.claim(folder)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FolderUnusableError, match=r"cannot use the folder .*/file/data: Not a dir"):
        datadir.claim(tmp_path / "file" / "data")


def test_a_place_for_temporary_files_that_cannot_be_written_is_told_of(tmp_path: Path) -> None:
    with pytest.raises(TemporaryFolderError, match="set TMPDIR"):
        datadir.claim_temporary(tmp_path / "nowhere")


def test_a_control_plane_that_is_not_running_says_so() -> None:
    plane = ControlPlane()
    with pytest.raises(DevError, match=r"call start\(\) first"):
        _ = plane.url
    plane.stop()
