"""The size of constructors: what takes many parts, or more than one callable, says why.

A constructor with ten parameters is hard to call rightly, and each callable hides who is called. A
dataclass is not asked: how many fields a record has is not a matter of wiring.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = {"sdk": "sdk/src", "worker": "worker-image/src", "operator": "operator/src"}
MAX_PARAMETERS = 6
MAX_CALLABLES = 1

CONSTRUCTORS = {
    (
        7,
        2,
        "asyncjob_operator.controllers.array_evaluator.ArrayEvaluator",
    ): "evaluates an array from all that is known: a clock, and one listener",
    (
        10,
        4,
        "asyncjob_operator.controllers.array_reconciler.ArrayReconciler",
    ): "a clock, leadership before each write, and a listener each for jobs that are and are gone",
    (
        7,
        3,
        "asyncjob.client.kubernetes.client.AsyncKubernetesJobsClient",
    ): "public; tests replace clock and ids, the gateway knows queues",
    (
        8,
        1,
        "asyncjob.app.context.JobContext",
    ): "what its runner gives a handler: reports, children, steps and files go different ways",
    (
        7,
        0,
        "asyncjob.client.rest.client.AsyncJobsClient",
    ): "public: all options of a connection, by keyword",
    (7, 0, "asyncjob.client.rest.client.JobsClient"): "public: the options of AsyncJobsClient",
    (
        7,
        1,
        "asyncjob.kube.informer._Reflector",
    ): "the state of one watch, which has all that the informer was given",
    (
        5,
        2,
        "asyncjob.testing.arrays.array_operator.FakeArrayOperator",
    ): "knows jobs by their store alone: changes them as a user does, and asks how far others are",
    (
        9,
        0,
        "asyncjob.testing.cluster.FakeCluster",
    ): "public: all options of a fake cluster, by keyword",
    (
        4,
        2,
        "asyncjob.testing.handler_run.HandlerCall",
    ): "creates its job late, and may stop at a moment that the test picks",
    (4, 2, "asyncjob_worker.builtin.exec_program.Pipes"): "a program has two outputs",
    (
        7,
        1,
        "asyncjob_worker.claiming.claimer.Claimer",
    ): "a claim names the worker, its app and its queue, and is fenced by the others",
    (5, 2, "asyncjob_worker.claiming.feed.BacklogFeed"): "a clock, and one listener",
    (
        3,
        2,
        "asyncjob_worker.claiming.foreign_looks.ForeignLooks",
    ): "makers of both ways to look; which of them is needed shows only then",
    (5, 2, "asyncjob_worker.claiming.queue_state.LiveWorkers"): "a clock, and one listener",
    (
        2,
        2,
        "asyncjob_worker.claiming.queue_state.QueueState",
    ): "two events with different listeners",
    (
        8,
        2,
        "asyncjob_worker.claiming.selector.ClaimSelector",
    ): "a clock, and the way to list again; limits of types and of chunks",
    (
        6,
        2,
        "asyncjob_worker.claiming.shard_watches.ShardWatches",
    ): "a maker of watches, and a question to the slots, which are built later",
    (
        5,
        2,
        "asyncjob_worker.claiming.slots.Slots",
    ): "claims know nothing of how jobs run, nor of how a worker ends",
    (8, 2, "asyncjob_worker.components.Components"): "wires one process",
    (
        5,
        2,
        "asyncjob_worker.execution.io_retry.RetriedCall",
    ): "the call itself, and the pause between two",
    (
        10,
        2,
        "asyncjob_worker.execution.runner.JobRunner",
    ): "one job, from its claim to its outcome, meets all parts of a worker",
    (2, 2, "asyncjob_worker.execution.runner.RunningHandlers"): "a clock, and one listener",
    (
        3,
        2,
        "asyncjob_worker.leases.outcome_writer.OutcomeWriter",
    ): "a pause that tests replace, and what to do with a refused result",
    (
        6,
        2,
        "asyncjob_worker.leases.stall_detector.EventLoopStallDetector",
    ): "looks at the loop from outside, by two questions",
    (
        5,
        4,
        "asyncjob_operator.cache.job_caches.JobCaches",
    ): "wires the caches: a clock, and a listener for each of three kinds of change",
    (2, 2, "asyncjob_operator.cache.queues.AdmissionCache"): "a clock, and one listener",
    (2, 2, "asyncjob_operator.cache.workers.WorkerRegistry"): "a clock, and one listener",
    (
        8,
        3,
        "asyncjob_operator.controllers.admission.ReservationController",
    ): "a clock, leadership before each write, and one listener",
    (
        8,
        2,
        "asyncjob_operator.controllers.cron_job_evaluator.CronJobEvaluator",
    ): "a clock, and one listener",
    (
        8,
        3,
        "asyncjob_operator.controllers.cron_job_reconciler.CronJobReconciler",
    ): "a clock, leadership before each write, and one listener",
    (
        3,
        2,
        "asyncjob_operator.controllers.cron_job_reconciler.RunCreator",
    ): "asks before each creation, and tells of it",
    (
        2,
        2,
        "asyncjob_operator.controllers.events.RecoveryStormEvents",
    ): "a clock, and where Events go",
    (
        3,
        3,
        "asyncjob_operator.controllers.events.UnservedQueueEvents",
    ): "compares what two caches say, and where Events go",
    (
        9,
        2,
        "asyncjob_operator.controllers.job_evaluator.JobEvaluator",
    ): "evaluates a job from all that is known: a clock, and one listener",
    (
        4,
        3,
        "asyncjob_operator.controllers.job_informer.JobWatch",
    ): "knows neither cache nor resync: three kinds of news",
    (
        9,
        3,
        "asyncjob_operator.controllers.job_reconciler.JobReconciler",
    ): "a clock, leadership before each write, and one listener",
    (
        5,
        3,
        "asyncjob_operator.controllers.queue_status.QueueStatusWriter",
    ): "a clock, leadership before each write, and where changes come from",
    (
        7,
        4,
        "asyncjob_operator.controllers.retention.RemovalPlanner",
    ): "a clock, and three questions to caches",
    (
        8,
        3,
        "asyncjob_operator.controllers.retention.RetentionController",
    ): "a clock, leadership before each write, and where Events go",
    (
        8,
        3,
        "asyncjob_operator.controllers.stale_workers.StaleWorkerCollector",
    ): "a clock, leadership before each write, and one question to a cache",
    (2, 2, "asyncjob_operator.kube.clock.Clock"): "two clocks are what it compares",
    (
        3,
        2,
        "asyncjob_operator.telemetry.job_metrics.JobMetrics",
    ): "a clock, and leadership at each scrape",
    (
        3,
        2,
        "asyncjob_operator.telemetry.job_metrics._Gauges",
    ): "statistics and leadership are asked for at each scrape",
    (2, 2, "asyncjob_operator.telemetry.quarantine.Quarantine"): "a clock, and one listener",
}
"""Parameters, callables among them, class → why it takes more than a constructor should.

The numbers are those of today: who takes a parameter away writes the smaller one, or deletes the
entry, and a class does not get here without a reason. Most callables that are not a clock let tests
and layers below do without a class above them.
"""


@cache
def modules(distribution: str) -> dict[str, ast.Module]:
    source = ROOT / SOURCES[distribution]
    return {
        ".".join(file.relative_to(source).with_suffix("").parts): ast.parse(file.read_text("utf-8"))
        for file in sorted(source.rglob("*.py"))
    }


@cache
def names_of_callables(distribution: str) -> re.Pattern[str]:
    """Return what finds `Callable` in an annotation, also by the name of a type alias for one."""
    shipped = [module for one in SOURCES for module in modules(one).values()]
    found = {name for one in shipped for name in aliases_of_callables(one)}
    own = {node.name for _, node in classes(distribution)}
    return re.compile(rf"\b({'|'.join(sorted({'Callable', *found} - own))})\b")


def aliases_of_callables(module: ast.Module) -> Iterator[str]:
    for node in module.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name[0].isupper() and "Callable" in ast.unparse(node.value):
                yield name


def classes(distribution: str) -> Iterator[tuple[str, ast.ClassDef]]:
    for name, module in modules(distribution).items():
        for node in ast.walk(module):
            if isinstance(node, ast.ClassDef):
                yield name, node


def size_of_constructor(node: ast.ClassDef, callables: re.Pattern[str]) -> tuple[int, int]:
    """Return the parameters of `__init__` but `self`, and how many are callables."""
    for one in node.body:
        if isinstance(one, ast.FunctionDef) and one.name == "__init__":
            _, *own = (*one.args.posonlyargs, *one.args.args)
            annotations = [it.annotation for it in (*own, *one.args.kwonlyargs)]
            wired = [it for it in annotations if it and callables.search(ast.unparse(it))]
            return len(annotations), len(wired)
    return 0, 0


@pytest.mark.parametrize("distribution", SOURCES)
def test_a_constructor_takes_few_parameters_and_one_callable(distribution: str) -> None:
    found = {
        (*size_of_constructor(node, names_of_callables(distribution)), f"{name}.{node.name}")
        for name, node in classes(distribution)
    }
    assert len(found) > 50, "found too few classes to be all of them"
    above = {one for one in found if one[0] > MAX_PARAMETERS or one[1] > MAX_CALLABLES}
    named = set(modules(distribution))
    assert above == {one for one in CONSTRUCTORS if one[2].rpartition(".")[0] in named}


def test_each_constructor_that_takes_more_is_there() -> None:
    named = {name for one in SOURCES for name in modules(one)}
    assert {one for *_, one in CONSTRUCTORS if one.rpartition(".")[0] not in named} == set()
    assert len({one for *_, one in CONSTRUCTORS}) == len(CONSTRUCTORS)


@pytest.mark.parametrize(
    ("signature", "size"),
    [
        ("self", (0, 0)),
        ("self, a: int, b: 'Callable[[], int] | None' = None, *rest: int", (2, 1)),
        ("self, a, /, b: Clock, *, c: Callable[..., None], d: Clockwork", (4, 2)),
    ],
)
def test_parameters_and_callables_are_counted(signature: str, size: tuple[int, int]) -> None:
    [node] = ast.parse(f"class A:\n    def __init__({signature}): ...").body
    assert isinstance(node, ast.ClassDef)
    assert size_of_constructor(node, re.compile(r"\b(Callable|Clock)\b")) == size
