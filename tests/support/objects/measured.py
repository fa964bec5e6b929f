"""Builders of results, as a run would leave them."""

from asyncjob_bench.stats.results import Results, Spread

GOOD = {
    "raw_ceiling_jobs_s": (250.0, 270.0, 260.0),
    "end_to_end_jobs_s": (200.0, 216.0, 205.4),
    "native_jobs_s": (30.0, 33.0, 32.0),
    "end_to_end_ratio": (0.8, 0.8, 0.79),
    "writes_per_job": (3.0,),
    "operator_writes_per_job": (0.0,),
    "pickup_p50_ratio": (1.4, 1.6, 1.5),
    "pickup_p99_ratio": (3.0, 4.0, 3.5),
    "conflict_ratio": (0.01,),
    "conflict_ratio_idle": (0.0,),
    "conflict_ratio_backlog": (0.01,),
    "watch_events_per_job_64": (4.5,),
    "flat_ratio_64": (0.7,),
    "conflict_ratio_64": (0.02,),
    "operator_ms_per_event": (0.3,),
    "operator_growth_ratio": (1.1,),
    "operator_rss_mib": (350.0,),
    "worker_rss_mib": (98.5,),
    "orphans_requeued_s": (4.5,),
    "start_rss_operator_mib": (140.0,),
    "start_rss_gateway_mib": (130.0,),
    "api_alloc_kib_per_job": (1740.0,),
    "jobs_s_per_api_core": (132.0, 130.0, 128.0),
    "waits_writes": (9.0,),
    "parked_operator_ratio": (1.01,),
    "parked_worker_ms_s": (3.2,),
    "parked_requests": (0.0,),
    "signal_p50_ratio": (1.5,),
    "plain_alloc_ratio": (1.005,),
    "array_items_over_jobs": (45.0,),
    "array_items_over_peer": (9.0,),
    "array_writes_per_1000": (9.0,),
    "array_live_objects": (41.0,),
    "array_operator_rss_ratio": (1.02,),
    "array_repeated_s": (1.2,),
    "array_plain_pickup_ratio": (1.3,),
    "raw_cores_busy": (0.99,),
    "raw_generator_share": (0.05,),
    "raw_beyond_ratio": (1.02,),
    "cpu_ms_per_job_etcd": (0.6, 0.6, 0.6),
}


def results(**changes: tuple[float, ...]) -> Results:
    """Return results that meet every bar, but for the changes; an empty tuple leaves a key out."""
    values = {key: it for key, it in {**GOOD, **changes}.items() if it}
    return Results(
        run={"began": "2026-01-01T00:00:00+00:00", "scale": "full", "parts": ["raw", "native"]},
        spreads={key: Spread(it) for key, it in values.items()},
        cpu=[{"what": "raw", "etcd": 0.6}, {"what": "end to end", "etcd": 0.6, "workers": 1.5}],
        proofs=[
            {"connections": 4.0, "jobs/s": 240.0, "generator": 0.05},
            {"connections": 16.0, "jobs/s": 260.0, "generator": 0.05},
        ],
    )
