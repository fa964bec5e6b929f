"""The API server's profile, told in shares."""

from asyncjob_bench.stats.breakdown import API_SERVER_ACTIVITIES, api_server_shares

TOP = """\
File: kube-apiserver
Duration: 10.08s, Total samples = 8.38s (83.15%)
Showing nodes accounting for 5.36s, 63.96% of 8.38s total
      flat  flat%   sum%        cum   cum%
     0.01s  0.12%  3.22%      0.88s 10.50%  k8s.io/apiserver/pkg/endpoints/handlers.(*patcher).applyPatch
         0     0%  1.07%      1.21s 14.44%  runtime.gcBgMarkWorker
         0     0%  1.07%      1.21s 14.44%  runtime.gcBgMarkWorker.func2
         0     0% 28.28%      0.19s  2.27%  runtime.gcAssistAlloc (inline)
"""  # noqa: E501  # as it is printed


def test_each_doing_has_the_share_of_its_functions_with_all_that_they_call() -> None:
    found = {str(row["what"]): row["share %"] for row in api_server_shares(TOP)}
    assert found["applies patches (with their share of coding)"] == 10.5
    assert found["collects garbage"] == 16.71
    assert len(found) == 2 < len(API_SERVER_ACTIVITIES)
