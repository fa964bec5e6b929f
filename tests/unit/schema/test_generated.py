"""The committed files are the generated ones, and the check tells when they are not."""

import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from asyncjob.columns import JOB_COLUMNS
from asyncjob.models.job_status import AsyncJobStatus
from asyncjob.rules.mutation import MUTATING
from asyncjob.schema.__main__ import main
from asyncjob.schema.manifests import (
    crds_folder,
    docs_folder,
    manifests,
    mutating_folder,
    mutating_manifests,
)

ROOT = Path(__file__).parents[3]


def run(folder: Path, *options: str) -> Result:
    folders = {"--out": "crds", "--chart": "chart", "--docs": "docs"}
    arguments = [word for flag, name in folders.items() for word in (flag, str(folder / name))]
    return CliRunner().invoke(main, [*arguments, *options])


@pytest.fixture
def written(tmp_path: Path) -> Path:
    assert run(tmp_path).exit_code == 0
    return tmp_path


@cache
def objects_by_file() -> dict[str, Any]:
    return dict(manifests())


def job_crd() -> Any:
    return objects_by_file()["asyncjobs.yaml"][0]


def version() -> Any:
    return job_crd()["spec"]["versions"][0]


def test_the_committed_manifests_are_the_generated_ones() -> None:
    assert crds_folder().outdated(ROOT / "crds") == []
    assert mutating_folder().outdated(ROOT / "crds" / MUTATING) == []


def test_the_charts_copies_are_the_generated_ones() -> None:
    copies = ROOT / "charts" / "asyncjob" / "files" / "crds"
    assert crds_folder().outdated(copies) == []
    assert mutating_folder().outdated(copies / MUTATING) == []


def test_the_committed_page_of_rules_is_the_generated_one() -> None:
    assert docs_folder().outdated(ROOT / "docs" / "reference") == []


def test_the_check_passes_on_what_was_written(written: Path) -> None:
    assert run(written, "--check").exit_code == 0


def test_the_check_fails_on_a_changed_file_and_names_it(written: Path) -> None:
    changed = written / "crds" / "asyncjobs.yaml"
    changed.write_text(changed.read_text().replace("Name of the queue", "Its queue"))
    result = run(written, "--check")
    assert result.exit_code == 1
    assert "asyncjobs.yaml" in result.output
    assert "asyncqueues.yaml" not in result.output


def test_the_check_fails_on_a_missing_file_and_changes_nothing(written: Path) -> None:
    (written / "docs" / "rules.md").unlink()
    result = run(written, "--check")
    assert result.exit_code == 1
    assert "rules.md" in result.output
    assert not (written / "docs" / "rules.md").exists()


def test_a_manifest_that_no_longer_belongs_there_is_found_and_removed(written: Path) -> None:
    left_over = written / "crds" / "policy-old.yaml"
    shutil.copy(written / "crds" / "policy-spec.yaml", left_over)
    assert "policy-old.yaml" in run(written, "--check").output
    assert run(written).exit_code == 0
    assert not left_over.exists()


def test_what_not_every_api_server_knows_lies_apart_and_is_checked_as_well(written: Path) -> None:
    apart = written / "crds" / MUTATING / "policy-managed-fields.yaml"
    beside = [path.read_text() for path in (written / "crds").glob("*.yaml")]
    assert not [text for text in beside if "Mutating" in text]
    apart.write_text(apart.read_text().replace("CREATE", "UPDATE"))
    assert "policy-managed-fields.yaml" in run(written, "--check").output


def test_the_policies_that_change_jobs_keep_none_from_being_created() -> None:
    names = []
    for policy, binding in mutating_manifests().values():
        spec: Any = policy["spec"]
        metadata: Any = policy["metadata"]
        assert (spec["failurePolicy"], spec["reinvocationPolicy"]) == ("Ignore", "Never")
        names.append(metadata["name"])
        assert binding["spec"] == {"policyName": names[-1]}
    assert names == ["managed-fields.asyncjob.dev", "shard.asyncjob.dev"]


def test_other_pages_beside_the_page_of_rules_are_left_alone(written: Path) -> None:
    page = written / "docs" / "asyncjob.md"
    page.write_text("by hand")
    assert run(written).exit_code == 0
    assert page.read_text() == "by hand"


def test_every_file_is_plain_yaml_without_anchors(written: Path) -> None:
    for path in (written / "crds").rglob("*.yaml"):
        text = path.read_text()
        assert list(yaml.safe_load_all(text))
        assert "&id" not in text


def test_names_and_short_names_are_as_promised() -> None:
    short = {
        name: objects[0]["spec"]["names"]["shortNames"]
        for name, objects in objects_by_file().items()
        if not name.startswith("policy-")
    }
    assert short == {
        "asyncjobs.yaml": ["aj"],
        "asyncqueues.yaml": ["aq"],
        "asynccronjobs.yaml": ["acj"],
        "asyncarrays.yaml": ["aa"],
    }


def test_the_category_is_not_the_name_of_a_kind() -> None:
    names = job_crd()["spec"]["names"]
    assert not set(names["categories"]) & {names["singular"], names["plural"], "all"}


def test_crds_survive_the_removal_of_a_chart() -> None:
    kept = {"helm.sh/resource-policy": "keep"}
    assert job_crd()["metadata"]["annotations"] == kept


def test_a_job_is_created_queued_by_default() -> None:
    status = version()["schema"]["openAPIV3Schema"]["properties"]["status"]
    assert status["default"] == {"phase": "Queued"}
    assert status["properties"]["attempt"]["default"] == 0


def test_counters_of_a_job_are_not_stored_while_they_are_0() -> None:
    status = version()["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    for name in ("retries", "crashes", "releases", "parks", "redrives", "reruns"):
        assert "default" not in status[name]
        assert getattr(AsyncJobStatus(), name) == 0


def test_every_column_is_printed() -> None:
    printed = [column["name"] for column in version()["additionalPrinterColumns"]]
    assert printed == [column.name for column in JOB_COLUMNS]


def test_the_selectable_fields_are_as_promised() -> None:
    paths = [field["jsonPath"] for field in version()["selectableFields"]]
    assert paths == [
        ".spec.queue",
        ".spec.type",
        ".spec.cancel",
        ".spec.deduplicationId",
        ".spec.priority",
        ".status.phase",
    ]


def test_every_field_is_described() -> None:
    def walk(schema: Any, path: str) -> list[str]:
        found = []
        for name, child in schema.get("properties", {}).items():
            if not child.get("description") and path + name != ".metadata":
                found.append(path + name)
            found += walk(child, f"{path}{name}.")
        return found

    for name, objects in objects_by_file().items():
        if not name.startswith("policy-"):
            versions = objects[0]["spec"]["versions"]
            assert walk(versions[0]["schema"]["openAPIV3Schema"], ".") == []


def test_every_policy_fails_closed_and_is_bound() -> None:
    for name, objects in objects_by_file().items():
        if name.startswith("policy-"):
            policy, binding = objects
            assert policy["spec"]["failurePolicy"] == "Fail"
            assert binding["spec"] == {
                "policyName": policy["metadata"]["name"],
                "validationActions": ["Deny"],
            }
