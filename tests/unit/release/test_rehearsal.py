"""What a rehearsal judges: metadata, project pages, licences, the chart's archive, the tutorial."""

import io
import os
import re
import signal
import subprocess
import tarfile
import zipfile
from email.message import Message
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from asyncjob_dev.rehearsal import development, installs, report, suites, tutorial
from asyncjob_dev.rehearsal.__main__ import STEPS, main
from asyncjob_dev.rehearsal.builds import chart_problems
from asyncjob_dev.rehearsal.distributions import DISTRIBUTIONS, Distribution, StepError, run
from asyncjob_dev.rehearsal.environments import CleanEnvironment, find_python, left_behind
from asyncjob_dev.rehearsal.licences import licences, problems
from asyncjob_dev.rehearsal.metadata import (
    metadata_problems,
    relative_links,
    source_problems,
    unconditional_needs,
    wheel_problems,
)
from asyncjob_dev.release.store import DISTRIBUTIONS as RELEASED_FOLDERS
from support.driven.jobs import until

ROOT = Path(__file__).parents[3]

GOOD = {
    "License-Expression": "Apache-2.0",
    "Summary": "jobs",
    "Requires-Python": ">=3.11",
    "Keywords": "jobs",
    "Description-Content-Type": "text/markdown",
}
CLASSIFIERS = ("Development Status :: 3 - Alpha", "Programming Language :: Python :: 3.11")


def metadata(page: str = "# Jobs\n", **other: str) -> Message:
    made = Message()
    for name, value in {**GOOD, **other}.items():
        made[name] = value
    for one in CLASSIFIERS:
        made["Classifier"] = one
    made.set_payload(page)
    return made


def wheel(folder: Path, text: str, *names: str) -> Path:
    path = folder / "a-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a-1.dist-info/METADATA", text)
        for name in names:
            archive.writestr(name, "")
    return path


@pytest.fixture(params=DISTRIBUTIONS, ids=lambda one: one.name)
def project_page(request: pytest.FixtureRequest) -> str:
    one: Distribution = request.param
    return (ROOT / one.folder / "README.md").read_text(encoding="utf-8")


def test_every_released_folder_is_rehearsed() -> None:
    assert {one.folder for one in DISTRIBUTIONS} == set(RELEASED_FOLDERS)


def test_every_program_of_a_distribution_is_tried() -> None:
    for one in DISTRIBUTIONS:
        assert set(one.programs) == set(one.project(ROOT).get("scripts", {}))


def test_every_project_page_can_be_read_away_from_the_repository(project_page: str) -> None:
    assert relative_links(project_page) == []
    assert project_page.startswith("# asyncjob-")


def test_good_metadata_have_no_problem() -> None:
    assert list(metadata_problems(metadata())) == []


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("License-Expression", "MIT", "License-Expression is MIT"),
        ("Summary", "", "no Summary"),
        ("Keywords", "", "no Keywords"),
        ("Description-Content-Type", "text/x-rst", "no project page in Markdown"),
    ],
)
def test_what_metadata_lack_is_named(field: str, value: str, problem: str) -> None:
    assert list(metadata_problems(metadata(**{field: value}))) == [problem]


def test_missing_classifiers_are_named() -> None:
    bare = metadata()
    del bare["Classifier"]
    assert [one.split("::")[0] for one in metadata_problems(bare)] == [
        "no classifier Development Status ",
        "no classifier Programming Language ",
    ]


@pytest.mark.parametrize(
    ("page", "found"),
    [
        ("see [docs](docs/README.md)", ["docs/README.md"]),
        ("![picture](docs/a.png) and [b](../b)", ["docs/a.png", "../b"]),
        ("[a](https://a.example) [b](#b) <mailto:a@b.example>", []),
        ("```\n[code](docs/README.md)\n```", []),
    ],
)
def test_links_that_only_the_repository_has_are_found(page: str, found: list[str]) -> None:
    assert relative_links(page) == found


def test_a_wheel_has_its_licence_and_its_types(tmp_path: Path) -> None:
    text = metadata().as_string()
    whole = ("a-1.dist-info/licenses/LICENSE", "a/py.typed", "a/__init__.py")
    assert list(wheel_problems(wheel(tmp_path, text, *whole))) == []
    assert list(wheel_problems(wheel(tmp_path, text, "a/__init__.py"))) == [
        "no licence file",
        "a/py.typed is missing",
    ]


def test_what_a_wheel_needs_without_extras_is_read(tmp_path: Path) -> None:
    text = "Requires-Dist: b>=1\nRequires-Dist: c==2; extra == 'more'\nRequires-Dist: a==3\n\n"
    assert unconditional_needs(wheel(tmp_path, text)) == ["a", "b"]


def test_a_source_archive_has_licence_and_page_and_nothing_that_is_built(tmp_path: Path) -> None:
    path = tmp_path / "a-1.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name in ("LICENSE", "README.md", "x.pyc"):
            archive.addfile(tarfile.TarInfo(f"a-1/{name}"), io.BytesIO())
    assert list(source_problems(path)) == ["no PKG-INFO", "x.pyc is no source"]


def test_a_chart_without_its_schema_and_kinds_is_no_chart() -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        described = tarfile.TarInfo("asyncjob/Chart.yaml")
        described.size = 3
        archive.addfile(described, io.BytesIO(b"{}\n"))
    assert [one.split(": ")[0] for one in chart_problems(packed.getvalue())] == [
        "no values.schema.json",
        "no files/crds/asyncjobs.yaml",
        "no files/crds/asyncqueues.yaml",
        "no files/crds/asynccronjobs.yaml",
        "no files/crds/asyncarrays.yaml",
        "it does not say which Kubernetes it needs",
    ]


@pytest.mark.parametrize(
    ("expression", "classifiers", "name", "found"),
    [
        ("MPL-2.0 AND (Apache-2.0 OR MIT)", [], "", {"MPL-2.0", "Apache-2.0", "MIT"}),
        ("", ["License :: OSI Approved :: BSD License"], "BSD", {"BSD"}),
        ("", ["Topic :: Jobs"], "3-Clause BSD License", {"BSD-3-Clause"}),
        ("", [], "", {""}),
        ("", [], "Proprietary", {"Proprietary"}),
    ],
)
def test_licences_are_read_from_wherever_they_are_named(
    expression: str, classifiers: list[str], name: str, found: set[str]
) -> None:
    assert licences(expression, classifiers, name) == found


def test_one_licence_off_the_list_is_one_too_many() -> None:
    found = {
        "a 1": frozenset({"MIT"}),
        "b 2": frozenset({"MIT", "GPL-3.0"}),
        "c 3": frozenset({""}),
    }
    assert list(problems(found)) == ["b 2: GPL-3.0 is not on the list", "c 3 names no licence"]


def test_what_an_uninstallation_leaves_is_found(tmp_path: Path) -> None:
    (tmp_path / "lib" / "asyncjob").mkdir(parents=True)
    (tmp_path / "lib" / "other").mkdir()
    assert left_behind(CleanEnvironment(tmp_path)) == ["lib/asyncjob"]


def test_a_python_that_is_not_there_is_none(tmp_path: Path) -> None:
    nowhere = {"PATH": str(tmp_path), "PYENV_ROOT": str(tmp_path)}
    assert find_python("3.99", nowhere) is None


def test_a_program_that_fails_is_quoted() -> None:
    with pytest.raises(StepError, match=r"ended with 3: why"):
        run(["sh", "-c", "echo why; exit 3"])


def test_the_tutorial_still_has_what_is_taken_from_it() -> None:
    page = (ROOT / tutorial.PAGE).read_text(encoding="utf-8")
    compile(tutorial.handler(page), tutorial.HANDLER_FILE, "exec")
    job = yaml.safe_load(tutorial.manifest(page))
    assert (job["kind"], job["metadata"]["name"]) == ("AsyncJob", "hello")
    refused = yaml.safe_load(tutorial.refused_manifest(page))
    assert refused["spec"]["type"] == job["spec"]["type"]
    assert f'"{job["spec"]["type"]}"' in tutorial.handler(page)


def test_a_tutorial_without_its_blocks_is_an_error() -> None:
    with pytest.raises(StepError, match="no longer the block"):
        tutorial.manifest("# Nothing")


def test_the_report_says_what_was_not_tried_and_what_is_left_for_people() -> None:
    checks = (report.ok("a"), report.not_tried("b", "no b here"), report.judged("c", ["wrong"]))
    said = list(report.lines([report.StepReport("step", checks, 2.4)]))
    assert said[:6] == [
        "step (2 s)",
        "  ok         a",
        "  not tried  b: no b here",
        "  FAILED     c: wrong",
        "Not tried here:",
        "  step: b",
    ]
    assert len(said) == 7 + len(report.LEFT_FOR_PEOPLE)


def test_only_a_failed_check_fails_the_rehearsal() -> None:
    good = report.StepReport("a", (report.ok("a"), report.not_tried("b", "")))
    assert not report.has_failed([good])
    assert report.has_failed([good, report.StepReport("c", (report.failed("c", ""),))])


def test_a_suite_of_which_nothing_ran_was_not_tried() -> None:
    seen = suites.tested("images", "s\n==== 3 skipped in 0.1s ====\n")
    assert seen == report.not_tried("images", "3 skipped in 0.1s")
    seen = suites.tested("images", ".s\n1 passed, 1 skipped in 0.1s\n")
    assert seen == report.ok("images", "1 passed, 1 skipped in 0.1s")


def test_without_a_packaged_chart_the_step_says_which_makes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suites, "missing_requirements", lambda _: [])
    with pytest.raises(StepError, match="run the step chart first"):
        list(suites.node(tmp_path))


def test_without_any_supported_python_licences_are_not_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installs, "find_python", lambda *_: None)
    (check,) = installs.licences(tmp_path)
    assert check.verdict is report.Verdict.NOT_TRIED


def test_an_unknown_step_is_refused() -> None:
    answer = CliRunner().invoke(main, ["--steps", "wheels,nonsense"])
    assert answer.exit_code == 2
    assert "no step nonsense" in answer.output


def test_the_release_workflow_runs_all_steps_before_it_publishes() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yaml").read_text())
    rehearsed = [step.get("run", "") for step in workflow["jobs"]["rehearsal"]["steps"]]
    assert any(line.endswith("make release-rehearsal") for line in rehearsed)
    assert "rehearsal" in workflow["jobs"]["release"]["needs"]
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            for chosen in re.findall(r"STEPS=(\S+)", step.get("run", "")):
                assert set(chosen.split(",")) <= set(STEPS)


@pytest.mark.parametrize(
    ("seconds", "load", "verdict"),
    [(19.9, 9.0, "ok"), (20.1, 1.0, "FAILED"), (20.1, 1.1, "not tried")],
)
def test_the_time_to_the_first_job_counts_on_a_machine_that_does_little_else(
    seconds: float, load: float, verdict: str
) -> None:
    check = development.bar(seconds, load, 2)
    assert check.verdict.value == verdict
    assert f"{seconds} s, begun at a load of {load}" in check.seen


def test_the_handler_of_the_project_page_is_one() -> None:
    page = (ROOT / development.PAGE).read_text(encoding="utf-8")
    assert '@app.handler("greet")' in development.handler(page)
    with pytest.raises(StepError, match="shows no handler"):
        development.handler("# a page without")


def test_processes_are_found_by_what_they_have_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASYNCJOB_TEST_FOUND", "here")
    with subprocess.Popen(["sh", "-c", "sleep 60 & wait"], start_new_session=True) as process:
        try:
            # The shell is there twice, until its copy has become what it runs.
            until(lambda: "sleep 60 " in found_here().values(), 30)
            assert process.pid in found_here()
            assert len(found_here()) == 2
            assert development.processor_seconds(found_here()) >= 0.0
        finally:
            os.killpg(process.pid, signal.SIGKILL)
    until(lambda: not found_here(), 30)


def found_here() -> dict[int, str]:
    return development.processes_with({"ASYNCJOB_TEST_FOUND": "here"})
