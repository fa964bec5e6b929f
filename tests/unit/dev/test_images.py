"""Building images: which program, which base, and what of this machine goes into a build."""

import configparser
import re
import runpy
import stat
import tarfile
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from asyncjob_dev.errors import EngineFailedError, NoBaseError, NoEngineError
from asyncjob_dev.images import (
    MIRROR,
    ROOT,
    BuildRequest,
    Engine,
    _exclude_paths,
    build_image,
    default_base,
    find_engine,
    pip_options,
    pip_secrets,
)

DOCKERFILE = ROOT / "worker-image" / "Dockerfile"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that is all of PATH, but for the shell's own programs."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("PROGRAM_LOG", str(tmp_path / "log"))
    return folder


def put(folder: Path, name: str, script: str = "exit 0") -> None:
    program = folder / name
    program.write_text(f'#!/bin/sh\necho "$0 $*" >>"$PROGRAM_LOG"\n{script}\n')
    program.chmod(0o755)


def log_of(folder: Path) -> list[str]:
    return (folder.parent / "log").read_text().splitlines()


def test_the_first_that_works_is_taken_not_the_first_that_is_there(programs: Path) -> None:
    put(programs, "docker", "echo no daemon >&2; exit 1")
    put(programs, "buildah")
    assert find_engine({"PATH": str(programs)}).name == "buildah"
    put(programs, "podman")
    assert find_engine({"PATH": str(programs)}).name == "podman"


def test_without_any_the_error_says_what_each_lacks_and_what_to_install(programs: Path) -> None:
    put(programs, "docker", "echo no daemon >&2; exit 1")
    with pytest.raises(NoEngineError, match=r"docker: no daemon; podman: not on PATH.*apt-get"):
        find_engine({"PATH": str(programs)})


def test_a_base_that_is_asked_for_is_used_and_nothing_is_fetched(programs: Path) -> None:
    put(programs, "docker")
    recipe = BuildRequest(DOCKERFILE, "mine", base="own-base:1")
    build_image(Engine("docker"), recipe, {"PATH": str(programs)})
    (line,) = log_of(programs)
    assert "--tag mine --build-arg=BASE=own-base:1" in line
    assert "--secret=id=pip.conf" in line
    assert line.endswith(str(ROOT))


def test_a_base_that_can_be_fetched_is_the_dockerfiles_own(programs: Path) -> None:
    put(programs, "docker", 'test "$1" != image')
    build_image(Engine("docker"), BuildRequest(DOCKERFILE, "mine"), {"PATH": str(programs)})
    wanted = default_base(DOCKERFILE)
    assert f"pull --quiet {wanted}" in log_of(programs)[1]
    assert f"--build-arg=BASE={wanted}" in log_of(programs)[2]


def test_without_a_registry_and_without_debootstrap_the_error_says_both(programs: Path) -> None:
    put(programs, "docker", "echo no such host >&2; exit 1")
    with pytest.raises(NoBaseError, match=r"no such host.*debootstrap is missing.*Set BASE"):
        build_image(Engine("docker"), BuildRequest(DOCKERFILE, "mine"), {"PATH": str(programs)})


def test_a_base_made_of_a_dated_snapshot_is_kept_apart(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(programs, "docker", 'test "$1" != pull && test "$1" != image')
    put(programs, "debootstrap", "shift 3; mkdir -p $1; echo today >$1/packages")
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    environ = {"PATH": str(programs), "ASYNCJOB_CACHE": str(tmp_path / "cache")}
    for mirror in ("", "http://snapshot.test/20261101T000000Z"):
        build_image(Engine("docker"), BuildRequest(DOCKERFILE, "mine"), {**environ, MIRROR: mirror})
    first, second = [line for line in log_of(programs) if "debootstrap" in line]
    assert not first.endswith("Z")
    assert second.endswith(" http://snapshot.test/20261101T000000Z")
    assert len(list((tmp_path / "cache" / "images").glob("base-*.tar"))) == 2


def test_a_build_that_fails_shows_the_end_of_what_was_said(programs: Path) -> None:
    put(programs, "podman", "echo the reason >&2; exit 3")
    with pytest.raises(EngineFailedError, match=r"podman build … ended with 3:\nthe reason"):
        build_image(
            Engine("podman"), BuildRequest(DOCKERFILE, "mine", base="x"), {"PATH": str(programs)}
        )


def test_what_pip_is_told_is_read_and_variables_win() -> None:
    listing = (
        "global.cert='/etc/ssl/mine.pem'\n"
        "global.index-url='https://first.test/simple'\n"
        "global.find-links='/wheels'\n"
        "install.extra-index-url='\\nhttps://a.test\\nhttps://b.test'\n"
        ":env:.index-url='https://u:p%40w@second.test/simple'\n"
    )
    assert pip_options(listing) == {
        "cert": "/etc/ssl/mine.pem",
        "index-url": "https://u:p%40w@second.test/simple",
        "extra-index-url": "\nhttps://a.test\nhttps://b.test",
    }


def test_the_authority_and_pips_options_are_secrets_that_only_their_owner_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = tmp_path / "ca.pem"
    authority.write_text("x")
    environ = {
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_INDEX_URL": "https://u:p%40w@index.test/simple",
        "PIP_CERT": str(authority),
    }
    config = tmp_path / "pip.conf"
    assert pip_secrets(tmp_path, environ) == [
        f"--secret=id=ca.pem,src={authority}",
        f"--secret=id=pip.conf,src={config}",
    ]
    assert stat.S_IMODE(config.stat().st_mode) == 0o600
    read = configparser.RawConfigParser()
    read.read(config)
    assert dict(read["global"]) == {
        "index-url": "https://u:p%40w@index.test/simple",
        "cert": "/etc/ssl/private-ca.pem",
    }


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("./usr/share/doc", True),
        ("./usr/share/doc/x", False),
        ("./usr/share/documents", True),
        ("./etc/resolv.conf", False),
        ("./usr/bin/python3", True),
    ],
)
def test_ballast_is_left_out_of_a_base_but_not_its_folders(name: str, *, kept: bool) -> None:
    member = tarfile.TarInfo(name)
    if name.endswith(("doc", "documents")):
        member.type = tarfile.DIRTYPE
    assert (_exclude_paths(member) is member) is kept


def test_installers_are_taken_out_of_a_base_and_nothing_else(tmp_path: Path) -> None:
    packages = tmp_path / "lib" / "python3.11" / "site-packages"
    for name in ("pip", "pip-24.0.dist-info", "setuptools", "wheel-0.45.dist-info", "pydantic"):
        (packages / name / "inside").mkdir(parents=True)
    (packages / "distutils-precedence.pth").touch()
    (tmp_path / "lib" / "python3.11" / "ensurepip" / "_bundled").mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    for name in ("pip", "pip3.11", "python3", "wheel"):
        (tmp_path / "bin" / name).touch()
    (tmp_path / "bin" / "pip3").symlink_to("pip3.11")
    finish = runpy.run_path(str(ROOT / "worker-image" / "finish.py"))
    finish["remove_installers"](tmp_path)
    left = sorted(path.name for path in tmp_path.rglob("*"))
    assert left == ["bin", "inside", "lib", "pydantic", "python3", "python3.11", "site-packages"]


@pytest.mark.parametrize(("image", "own"), [("worker", "worker-image"), ("operator", "operator")])
def test_an_image_has_what_the_distributions_in_it_depend_on(image: str, own: str) -> None:
    needed = dependencies(own) | plain_names(read_project("sdk")["dependencies"])
    lines = (ROOT / "requirements" / f"{image}.in").read_text().splitlines()
    listed = {line for line in lines if line and not line.startswith(("#", "-c"))}
    assert listed == needed - {"asyncjob-sdk"}, f"correct requirements/{image}.in, then `make lock`"


def test_what_is_listed_is_pinned_in_the_versions_that_are_tested() -> None:
    tested = pins("dev")
    for part in ("build", "worker", "operator"):
        assert pins(part).items() <= tested.items(), "run `make lock`"


def dependencies(part: str) -> set[str]:
    """Return the distributions that it needs, by the extras of the SDK that it asks for too."""
    own = read_project(part)
    needs = [*own["dependencies"], *own["optional-dependencies"]["tracing"]]
    return plain_names(with_extras(needs))


def plain_names(needs: Iterable[str]) -> set[str]:
    return {re.split(r"[<>=;\[ ]", line)[0] for line in needs}


def with_extras(needs: list[str]) -> Iterator[str]:
    """Yield what is needed; where the SDK is, with extras, also what those need."""
    for line in needs:
        yield line
        asked = re.match(r"asyncjob-sdk\[(.+)\]", line)
        for extra in asked[1].split(",") if asked else ():
            yield from with_extras(read_project("sdk")["optional-dependencies"][extra])


def read_project(part: str) -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((ROOT / part / "pyproject.toml").read_text())["project"]
    return project


def pins(part: str) -> dict[str, str]:
    text = (ROOT / "requirements" / f"{part}.txt").read_text()
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", text, re.MULTILINE))
