"""What a release has to have before it is one."""

import shutil
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from asyncjob_dev.release import __main__ as program
from asyncjob_dev.release.store import (
    DISTRIBUTIONS,
    DOCKERFILES,
    images,
    missing_for_release,
    store,
    unpinned_images,
    versions,
)
from asyncjob_dev.release.writes import SAMPLE_LIVES, record_lives
from support.cluster.releases import RELEASES, ROOT, Release

DIGEST = f"sha256:{'0a' * 32}"
PINNED = f"--base=python:3.11-slim@{DIGEST}"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Copy what is looked at, ready to be released."""
    for part in DISTRIBUTIONS:
        (tmp_path / part).mkdir()
        shutil.copy(ROOT / part / "pyproject.toml", tmp_path / part)
    shutil.copytree(ROOT / "charts/asyncjob", tmp_path / "charts/asyncjob")
    (tmp_path / "CHANGELOG.md").write_text("## 0.1.0, 2026-12-01\n")
    for file in DOCKERFILES:
        shutil.copy(ROOT / file, tmp_path / file)
    store(tmp_path, "0.1.0")
    return tmp_path


def changed(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def test_a_tree_that_lacks_nothing_may_be_released(tree: Path) -> None:
    assert list(missing_for_release(tree)) == []
    assert len(set(versions(ROOT).values())) == 1


def test_what_is_lacking_is_named_with_the_way_out(tree: Path) -> None:
    changed(tree / "sdk/pyproject.toml", 'version = "0.1.0"', 'version = "0.2.0"')
    changed(tree / "CHANGELOG.md", "2026-12-01", "unreleased")
    changed(tree / "charts/asyncjob/values.yaml", "\n", "\n# more\n")
    assert [one.split(":")[0] for one in missing_for_release(tree)] == [
        "versions differ",
        "CHANGELOG.md",
        "tests/releases/0.1.0/chart is not the chart",
    ]
    store(tree, "0.1.0")
    changed(tree / "tests/releases/0.1.0/writes.json", "claim-1", "claim-2")
    assert any(
        "writes.json is not what the code writes" in one for one in missing_for_release(tree)
    )
    shutil.rmtree(tree / "tests/releases/0.1.0")
    assert any("is missing: make release-fixtures" in one for one in missing_for_release(tree))


def test_a_tag_names_the_version(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "ROOT", tree)
    assert CliRunner().invoke(program.main, ["check", "v0.1.0", PINNED]).exit_code == 0
    wrong = CliRunner().invoke(program.main, ["check", "v0.1.1", PINNED])
    assert wrong.exit_code == 1
    assert "tag v0.1.0" in wrong.stderr
    assert CliRunner().invoke(program.main, ["store"]).output.endswith("tests/releases/0.1.0\n")


def test_lives_pass_every_phase_and_come_to_an_end() -> None:
    lives = record_lives("x")["lives"]
    phases = {write["phase"] for life in lives for write in life["writes"]}
    assert phases | {"Queued"} == {
        *("Queued", "Pending", "Scheduled", "Running", "Retrying"),
        *("Succeeded", "DeadLetter", "Cancelled"),
    }
    assert [life["name"] for life in lives] == list(SAMPLE_LIVES)
    assert {life["writes"][-1]["phase"] for life in lives} == {
        *("Succeeded", "DeadLetter", "Cancelled"),
    }


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.version)
def test_the_acts_of_a_version_before_are_acts_of_today(release: Release) -> None:
    """Else its lives cannot be gone on with by the code of today."""
    acts = {act for _, acts in SAMPLE_LIVES.values() for act in acts}
    kept = {write["act"] for life in release.lives for write in life["writes"]}
    assert kept <= acts


def test_a_base_without_a_digest_keeps_the_tree_from_being_released(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "ROOT", tree)
    for base in ("", "python:3.11-slim", "python@sha256:0a", f"python@{DIGEST.upper()}"):
        refused = CliRunner().invoke(program.main, ["check", "v0.1.0", f"--base={base}"])
        assert refused.exit_code == 1
        assert [line.split(":")[0] for line in refused.stderr.splitlines()] == [
            "worker-image/Dockerfile",
            "operator/Dockerfile",
        ]
        assert "repository variable IMAGE_BASE" in refused.stderr


def test_a_dockerfile_that_names_a_digest_needs_no_other_base(tree: Path) -> None:
    for file in DOCKERFILES:
        changed(tree / file, "ARG BASE=python:3.11-slim-bookworm", f"ARG BASE=python@{DIGEST}")
    assert list(unpinned_images(tree, {})) == []
    changed(tree / DOCKERFILES[0], "ARG BUILDER=${BASE}", "ARG BUILDER=builder:1")
    (found,) = unpinned_images(tree, {"BASE": f"other@{DIGEST}"})
    assert "builder:1 is a base without a digest" in found


def test_every_image_that_a_stage_begins_with_is_looked_at() -> None:
    dockerfile = """
        ARG BASE=a:1
        ARG BUILDER=$BASE
        FROM --platform=linux/amd64 ${BUILDER} AS build
        FROM b:2
        FROM build AS again
        FROM scratch
        FROM ${BASE}
    """
    assert list(images(dockerfile, {})) == ["a:1", "b:2", "a:1"]
    assert list(images(dockerfile, {"BASE": "c:3"})) == ["c:3", "b:2", "c:3"]


def test_the_release_workflow_checks_the_base_that_it_builds_on() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yaml").read_text())
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    with_base = [step["run"] for step in steps if "BASE" in step.get("env", {})]
    assert {step["env"]["BASE"] for step in steps if "BASE" in step.get("env", {})} == {
        "${{ vars.IMAGE_BASE }}"
    }
    assert ["release-check" in run for run in with_base] == [True, False]
    assert 'BASE="$BASE"' in with_base[0]
    assert '--build-arg "BASE=$BASE"' in with_base[1]
