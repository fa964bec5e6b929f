"""Numbers out of Prometheus' text format."""

from asyncjob_bench.stats.exposition import Scrape

TEXT = """\
# HELP apiserver_request_total Requests.
# TYPE apiserver_request_total counter
apiserver_request_total{code="201",dry_run="",resource="asyncjobs",verb="POST"} 40
apiserver_request_total{code="200",dry_run="",resource="asyncjobs",verb="PATCH"} 80
apiserver_request_total{code="200",dry_run="All",resource="asyncjobs",verb="PATCH"} 2
apiserver_request_total{code="200",dry_run="",resource="leases",verb="PATCH"} 7
# TYPE asyncjob_worker_running gauge
asyncjob_worker_running 16
"""


def test_a_total_is_the_sum_of_all_samples_with_the_labels() -> None:
    scrape = Scrape.of(TEXT)
    assert scrape.total("apiserver_request_total") == 129
    assert scrape.total("apiserver_request_total", resource="asyncjobs", dry_run="") == 120
    assert scrape.total("asyncjob_worker_running") == 16


def test_what_is_not_there_is_zero() -> None:
    assert Scrape.of(TEXT).total("apiserver_request_total", verb="DELETE") == 0
    assert Scrape.of("").total("anything") == 0
