"""The wheel of programs: what an installer needs of it, and the licences that go with it."""

import base64
import csv
import hashlib
import zipfile
from pathlib import Path

import pytest

from asyncjob_dev.binaries.installed import PROGRAMS_PACKAGE, ProgramsWheel
from asyncjob_dev.binaries.pins import Pin
from asyncjob_dev.programs_wheel.archive import TAGS, Program, write_wheel
from asyncjob_dev.programs_wheel.licences import NoLicenceError, licences
from asyncjob_dev.rehearsal.distributions import run
from asyncjob_dev.rehearsal.environments import PROGRAMS, new_environment

INFO = f"{PROGRAMS_PACKAGE}-1.2.3.dist-info"


def make(folder: Path, platform: str = "linux-amd64", epoch: int = 1_700_000_000) -> Path:
    program = folder / "etcd"
    program.write_text("#!/bin/sh\necho etcd\n")
    return write_wheel(
        folder / "out",
        platform=platform,
        version="1.2.3",
        programs=[Program("etcd", "v3.6.5", program)],
        licences={"go/LICENSE": b"BSD", "a.test/b@v1/LICENSE,MIT": b"MIT"},
        epoch=epoch,
    )


def test_every_file_is_on_record_with_its_digest(tmp_path: Path) -> None:
    with zipfile.ZipFile(make(tmp_path)) as wheel:
        rows = list(csv.reader(wheel.read(f"{INFO}/RECORD").decode().splitlines()))
        assert [row[0] for row in rows] == wheel.namelist()
        for name, digest, size in rows[:-1]:
            data = wheel.read(name)
            found = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            assert (digest, size) == (f"sha256={found}", str(len(data)))
        assert rows[-1] == [f"{INFO}/RECORD", "", ""]


def test_the_same_programs_make_the_same_wheel(tmp_path: Path) -> None:
    first = make(tmp_path).read_bytes()
    assert make(tmp_path).read_bytes() == first
    with zipfile.ZipFile(make(tmp_path)) as wheel:
        assert {one.date_time for one in wheel.infolist()} == {(2023, 11, 14, 22, 13, 20)}


@pytest.mark.parametrize("platform", TAGS)
def test_the_name_and_what_is_inside_name_the_same_platforms(tmp_path: Path, platform: str) -> None:
    made = make(tmp_path, platform)
    tags = made.name.removesuffix(".whl").split("-none-")[1].split(".")
    with zipfile.ZipFile(made) as wheel:
        lines = wheel.read(f"{INFO}/WHEEL").decode().splitlines()
    assert [line for line in lines if line.startswith("Tag: ")] == [
        f"Tag: py3-none-{tag}" for tag in tags
    ]


def test_what_is_installed_of_it_is_found_and_can_be_run(tmp_path: Path) -> None:
    environment = new_environment(tmp_path / "environment", PROGRAMS / "python")
    environment.install("--offline", "--no-index", str(make(tmp_path)))
    found = ProgramsWheel(environment.site_packages / PROGRAMS_PACKAGE).find("etcd")
    assert found is not None
    assert found.version == "v3.6.5"
    assert run([str(found.path)]) == "etcd\n"
    assert ProgramsWheel(environment.site_packages / PROGRAMS_PACKAGE).find("kubectl") is None


def test_without_the_wheel_nothing_is_found() -> None:
    assert ProgramsWheel().find("etcd") is None


def go_that_lists(folder: Path, *modules: str) -> tuple[Pin, str]:
    """Return a pin, and a compiler that names these modules, below `folder`, and itself."""
    for name in modules:
        (folder / name / "inner").mkdir(parents=True)
    (folder / "goroot").mkdir()
    (folder / "goroot/LICENSE").write_text("BSD")
    listed = "".join(
        f"m.test/{name}\\tv1.0.0\\t{folder / name}\\t{folder / name}/inner\\n" for name in modules
    )
    go = folder / "go"
    go.write_text(
        f"#!/bin/sh\n[ $1 = env ] && echo {folder}/goroot && exit\n"
        f"printf '\\t\\t\\t/std/fmt\\n{listed}'\n"
    )
    go.chmod(0o755)
    return Pin("etcd", "m.test/a/cmd", "v1.0.0", "1.26.0", folder, "0"), str(go)


def test_licences_are_those_of_the_module_and_of_the_folders_that_are_used(tmp_path: Path) -> None:
    pin, go = go_that_lists(tmp_path, "a", "b")
    (tmp_path / "a/LICENSE").write_text("Apache")
    (tmp_path / "a/inner/LICENSE.MIT").write_text("MIT")
    (tmp_path / "a/inner/licensing.go").write_text("package inner")
    (tmp_path / "b/COPYING").write_text("ISC")
    (tmp_path / "LICENSE").write_text("above the modules")
    assert licences(pin, go, {"PATH": "/bin:/usr/bin"}) == {
        "m.test/a@v1.0.0/LICENSE": b"Apache",
        "m.test/a@v1.0.0/inner/LICENSE.MIT": b"MIT",
        "m.test/b@v1.0.0/COPYING": b"ISC",
        "go/LICENSE": b"BSD",
    }


def test_a_module_without_a_licence_is_not_passed_on(tmp_path: Path) -> None:
    pin, go = go_that_lists(tmp_path, "a", "b")
    (tmp_path / "a/LICENSE").write_text("Apache")
    with pytest.raises(NoLicenceError, match=r"no licence in m\.test/b@v1\.0\.0"):
        licences(pin, go, {"PATH": "/bin:/usr/bin"})
