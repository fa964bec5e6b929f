"""Manifests with one thing changed at a time, and the table of what that saves."""

import pytest
import yaml

from asyncjob.rules.policies import POLICIES
from asyncjob_bench.prices import UNCHANGED, UNTRACKED, VARIANTS, installed, variant_rows

POLICY = "kind: ValidatingAdmissionPolicy\n"


def text(name: str) -> str:
    """Return the variant's manifests of jobs and their policies."""
    changed = VARIANTS[name](installed())
    about_jobs = [it for it in changed if not it["metadata"]["name"].startswith("async")]
    crd = next(it for it in changed if it["metadata"]["name"].startswith("asyncjobs."))
    return yaml.safe_dump_all([crd, *about_jobs])


@pytest.mark.parametrize(
    ("name", "mark"),
    [
        ("without rules in the CRD", "x-kubernetes-validations"),
        ("without patterns and formats", "pattern: "),
        ("without patterns and formats", "format: "),
        ("without selectable fields", "selectableFields"),
        ("shapeless, with the policy of ownership alone", "maxItems"),
        ("shapeless, with the policy of ownership alone", "x-kubernetes-validations"),
    ],
)
def test_a_variant_lacks_all_of_what_it_leaves_out(name: str, mark: str) -> None:
    assert text(UNCHANGED).count(mark) > 0 == text(name).count(mark)


@pytest.mark.parametrize(
    ("name", "mark", "more"),
    [
        ("status owned field by field", "x-kubernetes-map-type: atomic", -1),
        ("spec owned whole", "x-kubernetes-map-type: atomic", 1),
        ("with counters stored as 0", "default: 0\n", 6),
        (
            "with the policy of ownership alone",
            "kind: ValidatingAdmissionPolicy\n",
            1 - len(POLICIES),
        ),
        (UNTRACKED, "kind: MutatingAdmissionPolicy\n", 2),
    ],
)
def test_a_variant_is_changed_in_what_it_names(name: str, mark: str, more: int) -> None:
    assert text(name).count(mark) == text(UNCHANGED).count(mark) + more


def test_a_price_is_what_the_variant_saves_at_the_median() -> None:
    found = {
        UNCHANGED: [{"KiB/job": 900.0}, {"KiB/job": 1000.0}, {"KiB/job": 1200.0}],
        "less": [{"KiB/job": 900.0}, {"KiB/job": 100.0}, {"KiB/job": 1500.0}],
    }
    table = {str(row["what"]): row for row in variant_rows(found)}
    assert (table[UNCHANGED]["saves %"], table["less"]["KiB/job"]) == (0, 900)
    assert table["less"]["saves %"] == pytest.approx(10)
