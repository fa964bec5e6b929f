"""What the dashboard shows: a row per question, most pressing first."""

from dataclasses import dataclass
from typing import Final

SELECTED: Final = 'namespace=~"$namespace",queue=~"$queue"'


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel: its queries with their legends. `unit` is Grafana's; a `stat` shows one number."""

    title: str
    meaning: str
    queries: tuple[tuple[str, str], ...]
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 8


@dataclass(frozen=True, slots=True)
class PanelRow:
    """Panels under a title."""

    title: str
    panels: tuple[Panel, ...]


def _jobs(phases: str) -> str:
    return f'max by (namespace, queue, phase) (asyncjob_jobs{{{SELECTED},phase=~"{phases}"}})'


def _rate(metric: str, labels: str = SELECTED, by: str = "queue") -> str:
    return f"sum by ({by}) (rate({metric}{{{labels}}}[$__rate_interval]))"


def _quantile(share: float, histogram: str, labels: str = SELECTED, by: str = "queue") -> str:
    inner = f"sum by (le, {by}) (rate({histogram}_bucket{{{labels}}}[$__rate_interval]))"
    return f"histogram_quantile({share}, {inner})"


NOW: Final = PanelRow(
    "Now",
    (
        Panel(
            "Dead letters",
            "Jobs that wait for a person: redrive or dismiss them.",
            ((f"sum({_jobs('DeadLetter')})", "dead letters"),),
            kind="stat",
            width=4,
        ),
        Panel("Queued", "", ((f"sum({_jobs('Queued')})", "queued"),), kind="stat", width=4),
        Panel("Running", "", ((f"sum({_jobs('Running')})", "running"),), kind="stat", width=4),
        Panel(
            "Oldest waiting job",
            "Of those that could be claimed, were there a worker and a place.",
            ((f"max(asyncjob_queue_oldest_seconds{{{SELECTED}}})", "oldest"),),
            unit="s",
            kind="stat",
            width=4,
        ),
        Panel(
            "Workers",
            "",
            (
                (
                    f"sum(max by (namespace, queue) (asyncjob_queue_workers{{{SELECTED}}}))",
                    "workers",
                ),
            ),
            kind="stat",
            width=4,
        ),
        Panel(
            "Leaders",
            "1 for each operator in good order; 0: nothing is retried, recovered, scheduled or "
            "cancelled.",
            (
                (
                    "sum by (namespace, job) (asyncjob_operator_leading)",
                    "{{namespace}}/{{job}}",
                ),
            ),
            kind="stat",
            width=4,
        ),
    ),
)

QUEUES: Final = PanelRow(
    "Queues",
    (
        Panel(
            "Jobs by phase",
            "But for finished ones.",
            (
                (
                    f"sum by (phase) ({_jobs('Pending|Scheduled|Queued|Running|Retrying')})",
                    "{{phase}}",
                ),
            ),
        ),
        Panel(
            "Oldest waiting job",
            "",
            ((f"max by (queue) (asyncjob_queue_oldest_seconds{{{SELECTED}}})", "{{queue}}"),),
            unit="s",
        ),
        Panel(
            "Slots and running jobs",
            "",
            (
                (f"sum(max by (namespace, queue) (asyncjob_queue_slots{{{SELECTED}}}))", "slots"),
                (f"sum({_jobs('Running')})", "running"),
            ),
        ),
        Panel(
            "Submitted, succeeded",
            "Jobs a second.",
            (
                (
                    f"sum(rate(asyncjob_jobs_submitted_total{{{SELECTED}}}[$__rate_interval]))",
                    "submitted",
                ),
                (
                    f"sum(rate(asyncjob_jobs_succeeded_total{{{SELECTED}}}[$__rate_interval]))",
                    "succeeded",
                ),
            ),
            unit="ops",
        ),
        Panel(
            "Retried, cancelled, given up",
            "Jobs a second, dead letters by reason.",
            (
                (
                    f"sum(rate(asyncjob_jobs_retried_total{{{SELECTED}}}[$__rate_interval]))",
                    "retried",
                ),
                (
                    f"sum(rate(asyncjob_jobs_cancelled_total{{{SELECTED}}}[$__rate_interval]))",
                    "cancelled",
                ),
                (_rate("asyncjob_jobs_dead_lettered_total", by="reason"), "{{reason}}"),
            ),
            unit="ops",
        ),
        Panel(
            "Attempts by type",
            "Begun per second.",
            ((_rate("asyncjob_jobs_claimed_total", by="type"), "{{type}}"),),
            unit="ops",
        ),
    ),
)

TIMES: Final = PanelRow(
    "How long it takes",
    (
        Panel(
            "Queue wait",
            "Nine of ten, by queue.",
            ((_quantile(0.9, "asyncjob_job_queue_seconds"), "{{queue}}"),),
            unit="s",
        ),
        Panel(
            "Handlers",
            "Nine of ten, by type.",
            ((_quantile(0.9, "asyncjob_worker_handler_seconds", "", "type"), "{{type}}"),),
            unit="s",
        ),
        Panel(
            "End to end",
            "Nine of ten, by queue.",
            ((_quantile(0.9, "asyncjob_job_end_to_end_seconds"), "{{queue}}"),),
            unit="s",
        ),
    ),
)

PARTS: Final = PanelRow(
    "Workers and operator",
    (
        Panel(
            "Recovered jobs",
            "Taken from dead workers, a second, by reason.",
            ((_rate("asyncjob_operator_recovery_recovered_total", "", "reason"), "{{reason}}"),),
            unit="ops",
        ),
        Panel(
            "Claims and heartbeats that failed",
            "A second. Conflicts are cheap; fenced attempts were for nothing.",
            (
                (_rate("asyncjob_worker_claims_total", 'outcome!="won"', "outcome"), "{{outcome}}"),
                (
                    'sum(rate(asyncjob_worker_lease_renewals_total{outcome="failed"}'
                    "[$__rate_interval]))",
                    "heartbeats failed",
                ),
                ("sum(rate(asyncjob_worker_fenced_total[$__rate_interval]))", "fenced"),
            ),
            unit="ops",
        ),
        Panel(
            "API server",
            "Nine of ten answers; throttled requests a second.",
            (
                (
                    _quantile(0.9, "asyncjob_operator_api_request_seconds", "", "method"),
                    "{{method}}",
                ),
                (
                    'sum(rate(asyncjob_worker_api_requests_total{code="429"}[$__rate_interval]))',
                    "workers throttled",
                ),
                (
                    'sum(rate(asyncjob_operator_api_requests_total{code="429"}[$__rate_interval]))',
                    "operators throttled",
                ),
            ),
            unit="s",
        ),
        Panel(
            "Watch",
            "How late new jobs are seen; what it has missed and a comparison has found, a second.",
            (
                ("max(asyncjob_operator_watch_lag_seconds)", "lag"),
                (_rate("asyncjob_operator_resync_repairs_total", "", "kind"), "missed: {{kind}}"),
            ),
        ),
        Panel(
            "Deadlines judged late",
            "Nine of ten turns of the loop.",
            (
                (
                    _quantile(0.9, "asyncjob_operator_scheduler_lag_seconds", "", "instance"),
                    "{{instance}}",
                ),
            ),
            unit="s",
        ),
        Panel(
            "Gateway",
            "Requests a second by code.",
            ((_rate("asyncjob_gateway_requests_total", "", "code"), "{{code}}"),),
            unit="reqps",
        ),
    ),
)

ROWS: Final = (NOW, QUEUES, TIMES, PARTS)
