"""CPU by program and job, and what follows for the size of machines."""

from dataclasses import replace

import pytest

from asyncjob_bench.stats.results import Row
from asyncjob_bench.stats.usage import Usage, cluster_sizing, cores, cpu_row, merge_rounds, sizing

BEFORE = Usage({"etcd": 1.0, "kube-apiserver": 10.0}, busy=100.0, available=1000.0)
AFTER = Usage({"etcd": 1.5, "kube-apiserver": 13.0, "new": 0.5}, busy=105.0, available=1008.0)


def test_what_was_used_between_two_moments_includes_who_came_meanwhile() -> None:
    used = AFTER - BEFORE
    assert used == Usage({"etcd": 0.5, "kube-apiserver": 3.0, "new": 0.5}, 5.0, 8.0)


def test_what_the_programs_did_not_use_was_used_by_others() -> None:
    used = AFTER - BEFORE
    assert used.utilisation == 5 / 8
    assert used.foreign == 1 / 8
    assert used.share("kube-apiserver") == 3 / 8
    assert used.share("unknown") == 0


def test_what_the_benchmark_itself_used_is_no_others_nor_counted_twice() -> None:
    used = replace(AFTER - BEFORE, own=0.5)
    assert used.foreign == 0.5 / 8
    assert used.with_client(0.4).foreign == pytest.approx(0.5 / 8)
    assert used.with_client(0.4).per_job(100)["client"] == 4.0


def test_ticks_that_come_late_make_nobody_negative() -> None:
    assert Usage({"etcd": 3.0}, busy=2.0, available=8.0).foreign == 0


def test_cpu_per_job_is_in_milliseconds() -> None:
    used = AFTER - BEFORE
    assert used.per_job(1000) == {"etcd": 0.5, "kube-apiserver": 3.0, "new": 0.5}
    shown = cpu_row("raw", used, 1000)
    assert (shown["what"], shown["all ms/job"], shown["cores busy"]) == ("raw", 4.0, 0.625)


def test_cores_for_a_rate_leave_headroom() -> None:
    assert cores(100, 6.0) == pytest.approx(1.0)


def test_every_program_that_was_measured_is_sized_for_every_rate() -> None:
    rows = sizing({"cpu_ms_per_job_etcd": 0.6, "end_to_end_jobs_s": 200.0})
    assert [(it["jobs/s"], it["writes/s"], it["etcd cores"]) for it in rows] == [
        (10.0, 30.0, 0.01),
        (100.0, 300.0, 0.1),
        (1000.0, 3000.0, 1.0),
    ]


def test_what_programs_used_in_a_flow_is_found_by_both_tables() -> None:
    names = ("etcd", "kube-apiserver", "operator", "workers")
    figures = Usage(dict.fromkeys(names, 2.0), 8.0, 8.0).figures(100)
    assert {f"{name.replace('-', '_')} cores" for name in names} <= set(sizing(figures)[0])
    assert cluster_sizing(figures)[0]["API server cores"] == cores(1000, 20.0) // 1 + 1


def test_without_a_measurement_nothing_is_sized() -> None:
    assert (sizing({}), cluster_sizing({"cpu_ms_per_job_operator": 1.0})) == ([], [])


def test_clusters_are_counted_by_cores_or_by_etcd_whichever_is_the_limit() -> None:
    per_job = {"cpu_ms_per_job_operator": 0.9, "cpu_ms_per_job_workers": 3.0}
    by_etcd = cluster_sizing({**per_job, "cpu_ms_per_job_kube_apiserver": 0.6})
    assert [(it["writes/s"], it["clusters"]) for it in by_etcd] == [
        (3000.0, 1.0),
        (9000.0, 1.0),
        (30_000.0, 3.0),
    ]
    by_cores = cluster_sizing({**per_job, "cpu_ms_per_job_kube_apiserver": 12.0})
    assert [(it["API server cores"], it["clusters"]) for it in by_cores] == [
        (20.0, 1.0),
        (60.0, 2.0),
        (200.0, 5.0),
    ]
    assert [(it["operators"], it["worker processes"]) for it in by_cores[:1]] == [(2.0, 5.0)]


def test_rounds_of_the_same_are_one_row_of_medians() -> None:
    rounds: list[Row] = [{"what": "raw", "etcd": value} for value in (1.0, 9.0, 2.0)]
    assert merge_rounds([*rounds, {"what": "native"}]) == [
        {"what": "raw", "etcd": 2.0},
        {"what": "native"},
    ]
