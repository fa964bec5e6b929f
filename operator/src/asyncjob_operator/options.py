"""The operator's options: each is a flag, an environment variable and one of the settings."""

import platform
import secrets
from functools import partial
from typing import Any, Final

import click

from asyncjob.names import OPERATOR_LEASE
from asyncjob.programs.options import (
    PORT,
    POSITIVE_SECONDS,
    SECONDS,
    log_format_option,
    log_level_option,
    metrics_port_option,
    program_option,
    with_options,
)
from asyncjob_operator.core.options import DecisionOptions, RetentionOptions
from asyncjob_operator.settings import JobWatchSource, Settings
from asyncjob_operator.telemetry.logs import configure_operator_logs

PREFIX: Final = "ASYNCJOB_OPERATOR"
DEFAULTS: Final = Settings()
RETENTION_PREFIX: Final = "retention_"
DECISION_OPTIONS: Final = (
    "recovery",
    "lease_margin",
    "timeout_margin",
    "unknown_type_delay",
    "missing_dependency_timeout",
)
_option = partial(program_option, PREFIX, show_envvar=True)

CONNECTION_OPTIONS: Final = (
    _option(
        "--namespace", multiple=True, help="Namespace to operate in; repeatable. Default: all."
    ),
    _option("--kubeconfig", help="Kubeconfig. Default: KUBECONFIG, the pod, ~/.kube/config."),
    _option(
        "--recovery/--no-recovery",
        default=True,
        help="Recover jobs of dead workers, by lease and by pod.",
    ),
    _option(
        "--leader-elect/--no-leader-elect",
        default=True,
        help="Elect a leader among several operators. Without it, run only one.",
    ),
    _option("--lease-namespace", help="Namespace of the election's Lease. Default: the pod's."),
    _option("--lease-name", default=OPERATOR_LEASE, help="Name of the election's Lease."),
)

RUN_OPTIONS: Final = (
    _option(
        "--identity",
        help="Name of this replica in the election, followed by a random part. Default: the host.",
    ),
    _option(
        "--lease-margin",
        type=SECONDS,
        default=DEFAULTS.options.lease_margin,
        help="Seconds added to a job's lease before it counts as expired.",
    ),
    _option(
        "--timeout-margin",
        type=SECONDS,
        default=DEFAULTS.options.timeout_margin,
        help="Seconds that a worker has to end an attempt after its timeout before the operator "
        "ends it.",
    ),
    _option(
        "--unknown-type-delay",
        type=SECONDS,
        default=DEFAULTS.options.unknown_type_delay,
        help="Seconds without a live worker for a type after which its jobs become dead letters, "
        "in queues with unknownType: DeadLetter.",
    ),
    _option(
        "--missing-dependency-timeout",
        type=SECONDS,
        default=DEFAULTS.options.missing_dependency_timeout,
        help="Seconds for which a job waits for a missing job in dependsOn; 0: no limit.",
    ),
    _option(
        "--resync-interval",
        type=POSITIVE_SECONDS,
        default=DEFAULTS.resync_interval,
        help="Seconds between resyncs with the cluster.",
    ),
    _option(
        "--backoff-initial",
        type=POSITIVE_SECONDS,
        default=DEFAULTS.backoff_initial,
        help="Initial backoff after a failure, in seconds; doubled each time.",
    ),
    _option(
        "--backoff-max",
        type=POSITIVE_SECONDS,
        default=DEFAULTS.backoff_max,
        help="Maximum backoff after a failure, in seconds.",
    ),
    _option(
        "--worker-timeout",
        type=SECONDS,
        default=DEFAULTS.worker_timeout,
        help="Seconds without a renewal after which a worker's Lease is deleted; 0: never.",
    ),
    _option(
        "--job-watch",
        type=click.Choice([item.value for item in JobWatchSource]),
        default=DEFAULTS.job_watch.value,
        help="Who watches AsyncJobs: the operator itself (direct), or kopf.",
    ),
    _option("--retention/--no-retention", default=True, help="Remove finished jobs."),
    _option(
        "--retention-max-age",
        type=SECONDS,
        default=DEFAULTS.retention_options.max_age,
        help="Seconds a finished job is kept.",
    ),
    _option(
        "--retention-dead-letter-max-age",
        type=SECONDS,
        default=DEFAULTS.retention_options.dead_letter_max_age,
        help="Seconds a dead letter is kept.",
    ),
    _option(
        "--retention-max-finished",
        type=click.IntRange(min=0),
        default=DEFAULTS.retention_options.max_finished,
        help="Maximum number of finished jobs per queue; dead letters are counted separately.",
    ),
    _option(
        "--retention-min-age",
        type=SECONDS,
        default=DEFAULTS.retention_options.min_age,
        help="Seconds for which a finished job is kept in any case.",
    ),
    _option(
        "--retention-namespace-limit",
        type=click.IntRange(min=1),
        default=DEFAULTS.retention_options.namespace_limit,
        help="Maximum number of finished jobs per namespace; the oldest are deleted first, "
        "whatever their age.",
    ),
    _option(
        "--retention-interval",
        type=POSITIVE_SECONDS,
        default=DEFAULTS.retention_interval,
        help="Seconds between passes over the finished jobs.",
    ),
    _option(
        "--retention-rate",
        type=POSITIVE_SECONDS,
        default=DEFAULTS.retention_rate,
        help="Maximum number of jobs deleted per second.",
    ),
    metrics_port_option(PREFIX, default=0, show_envvar=True),
    _option("--health-port", type=PORT, default=0, help="Port of /healthz and /readyz; 0: none."),
)

LOGGING_OPTIONS: Final = (
    log_format_option(PREFIX, help="Format of log lines.", show_envvar=True),
    log_level_option(PREFIX, show_envvar=True),
)


def settings_from(given: dict[str, Any]) -> Settings:
    """Return the settings of what click was given; what a command lacks stays default."""
    kept = {
        name[len(RETENTION_PREFIX) :]: value
        for name, value in given.items()
        if name.startswith(RETENTION_PREFIX)
    }
    decided = {name: given[name] for name in DECISION_OPTIONS if name in given}
    timing = {name: kept.pop(name) for name in ("interval", "rate") if name in kept}
    rest = {
        name: value
        for name, value in given.items()
        if name not in {*DECISION_OPTIONS, "namespace", "identity", "job_watch"}
        and not name.startswith(RETENTION_PREFIX)
    }
    return Settings(
        namespaces=tuple(given["namespace"]),
        identity=f"{given.get('identity') or platform.node()}_{secrets.token_hex(4)}",
        options=DecisionOptions(**decided),
        retention_options=RetentionOptions(**kept),
        job_watch=JobWatchSource(given.get("job_watch", DEFAULTS.job_watch)),
        **{RETENTION_PREFIX + name: value for name, value in timing.items()},
        **rest,
    )


@click.command()
@with_options(CONNECTION_OPTIONS, RUN_OPTIONS, LOGGING_OPTIONS)
def _from_environment(**_: Any) -> None:
    """Read the options of `run` from their environment variables alone."""


def settings_from_environment() -> Settings:
    """Set up logging and return the settings as the environment gives them, flags left out.

    Raises click.UsageError where a variable makes no sense.
    """
    given = _from_environment.make_context("asyncjob-operator", []).params
    configure_operator_logs(given.pop("log_format"), given.pop("log_level"))
    return settings_from(given)
