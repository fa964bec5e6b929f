"""Registering handlers: what fits, and one clear line for what does not."""

import asyncio
import functools
import math
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, ValidationError, field_serializer

from asyncjob import JobContext, RetryPolicy, WorkerApp
from asyncjob.app import Handler, HandlerError, Isolation
from asyncjob.app.handler import build_handler, describe_validation_error
from asyncjob.free_json import FreeJsonError, normalize
from asyncjob.lifecycle.policy import PolicyLayer

NAN = math.nan


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)
    day: date


class Unknown:
    """No type that pydantic knows."""


class Callable_:  # noqa: N801
    async def __call__(self, job: JobContext, payload: int) -> int:
        return payload + 0 * (job is not None)


async def takes_both(job: JobContext, payload: int) -> int:
    return payload


def built(function: Any) -> Handler:
    return build_handler("t", function, PolicyLayer())


def test_async_and_sync_handlers_run_where_they_belong() -> None:
    def sync(job: JobContext) -> None: ...

    assert built(takes_both).isolation is Isolation.LOOP
    assert built(sync).isolation is Isolation.THREAD


def test_a_handler_with_a_process_of_its_own_runs_in_there_as_it_would_here() -> None:
    def sync(job: JobContext) -> None: ...

    for function, place in ((takes_both, Isolation.LOOP), (sync, Isolation.THREAD)):
        handler = build_handler("t", function, PolicyLayer(), isolation="process", memory_mib=64)
        assert handler.isolation is Isolation.PROCESS
        assert handler.memory_mib == 64
        assert handler.inside_process().isolation is place


def test_payload_and_result_of_such_a_handler_are_checked_in_its_process() -> None:
    async def work(job: JobContext, payload: Strict) -> Strict:
        return payload

    outside = build_handler("t", work, PolicyLayer(), isolation="process")
    day = {"day": "2026-01-01"}
    assert outside.read_payload({"day": "never"}) == {"day": "never"}
    assert outside.dump_result(day) == day
    assert outside.inside_process().read_payload(day) == Strict(day=date(2026, 1, 1))
    assert outside.inside_process().dump_result(Strict(day=date(2026, 1, 1))) == day


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"isolation": "thread"}, "isolation='thread' is unknown; give 'process'"),
        ({"isolation": ["process"]}, "is unknown"),
        ({"memory_mib": 64}, "memory_mib needs isolation='process'"),
        ({"isolation": "process", "memory_mib": 0}, "memory_mib=0 is not a number of MiB"),
        ({"isolation": "process", "memory_mib": "1G"}, "memory_mib='1G' is not a number of MiB"),
        ({"isolation": "process", "memory_mib": True}, "memory_mib=True is not a number of MiB"),
    ],
)
def test_a_wrong_isolation_is_one_line_that_names_the_type(
    options: dict[str, Any], words: str
) -> None:
    with pytest.raises(HandlerError, match=words) as error:
        WorkerApp().handler("some-type", **options)(takes_both)
    assert "'some-type'" in str(error.value)


@pytest.mark.parametrize(
    "function", [functools.partial(takes_both), Callable_()], ids=["partial", "object"]
)
def test_partials_and_callable_objects_are_seen_through(function: Any) -> None:
    handler = built(function)
    assert handler.isolation is Isolation.LOOP
    assert handler.takes_payload
    assert asyncio.run(handler.function(None, 3)) == 3


async def yields(job: JobContext) -> AsyncIterator[int]:
    yield 1


def generates(job: JobContext) -> Iterator[int]:
    yield 1


async def takes_nothing() -> None: ...
async def takes_three(job: JobContext, a: int, b: int) -> None: ...
async def takes_no_context(payload: int) -> None: ...
async def takes_untyped(job: JobContext, *, db) -> None: ...  # type: ignore[no-untyped-def]
async def takes_any_keyword(job: JobContext, **rest: int) -> None: ...
async def takes_any_number(job: JobContext, *payload: int) -> None: ...
async def takes_unknown(job: JobContext, payload: Unknown) -> None: ...
async def returns_unknown(job: JobContext) -> Unknown: ...  # type: ignore[empty-body]


async def takes_misspelt(job: JobContext, payload: "Ordr") -> None: ...  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (takes_nothing, "it takes 0 parameters"),
        (takes_three, "it takes 3 parameters"),
        (takes_no_context, "the first parameter is the JobContext"),
        (takes_untyped, "keyword-only parameter 'db' has no type"),
        (takes_any_keyword, "cannot be given by position"),
        (takes_any_number, "cannot be given by position"),
        (takes_misspelt, "unknown type in its signature: .*Ordr"),
        (takes_unknown, "its payload cannot be checked"),
        (returns_unknown, "its result cannot be checked"),
        (yields, "it yields"),
        (generates, "it yields"),
    ],
)
def test_what_does_not_fit_is_one_line_that_names_the_function(function: Any, words: str) -> None:
    with pytest.raises(HandlerError, match=words) as error:
        built(function)
    assert function.__name__ in str(error.value)
    assert "\n" not in str(error.value)


def test_a_payload_is_read_as_json_even_by_strict_models() -> None:
    async def work(job: JobContext, payload: Strict) -> None: ...

    assert built(work).read_payload({"day": "2026-01-01"}) == Strict(day=date(2026, 1, 1))


def nested(levels: int) -> Any:
    value: Any = "2026-01-01"
    for _ in range(levels):
        value = {"a": value}
    return value


class Tree(BaseModel):
    day: date
    tree: dict[str, Any]


@pytest.mark.parametrize("levels", [199, 201, 300, 900])
def test_a_payload_of_any_depth_is_given_to_a_handler_whose_type_takes_it(levels: int) -> None:
    async def anything(job: JobContext, payload: Any) -> None: ...

    async def typed(job: JobContext, payload: Tree) -> None: ...

    assert innermost(built(anything).read_payload(nested(levels))) == (levels, "2026-01-01")
    read = built(typed).read_payload({"day": "2026-01-01", "tree": nested(levels)})
    assert isinstance(read, Tree)
    assert read.day == date(2026, 1, 1)
    assert innermost(read.tree) == (levels, "2026-01-01")


def innermost(value: Any) -> tuple[int, Any]:
    """Return how deep it is and what lies there; comparing such values overflows Python's stack."""
    levels = 0
    while isinstance(value, dict):
        value, levels = value["a"], levels + 1
    return levels, value


def test_a_payload_too_deep_to_be_checked_strictly_is_refused_in_words() -> None:
    async def work(job: JobContext, payload: Strict) -> None: ...

    with pytest.raises(ValidationError) as error:
        built(work).read_payload({"day": "2026-01-01", "more": nested(300)})
    described = describe_validation_error(error.value)
    assert described.startswith("payload: nested deeper than 200 levels")
    assert "submit it flatter" in described


def test_a_handler_without_a_payload_does_not_look_at_one() -> None:
    async def work(job: JobContext) -> None: ...

    assert built(work).read_payload(nested(900)) is None
    outside = build_handler("t", work, PolicyLayer(), isolation="process")
    assert outside.read_payload(nested(900)) is None


def test_a_missing_payload_is_the_handlers_own_default() -> None:
    async def work(job: JobContext, payload: int = 7) -> None: ...

    assert built(work).read_payload(None) == 7
    assert built(work).read_payload(8) == 8


def test_a_schema_error_names_the_fields_on_one_line() -> None:
    async def work(job: JobContext, payload: Strict) -> None: ...

    with pytest.raises(ValidationError) as error:
        built(work).read_payload({"day": "never"})
    assert describe_validation_error(error.value).startswith("day: ")
    with pytest.raises(ValidationError) as error:
        built(work).read_payload(None)
    assert describe_validation_error(error.value).startswith("payload: ")


def test_a_declared_result_is_dumped_by_its_type_and_any_other_left_alone() -> None:
    async def declared(job: JobContext) -> Strict:
        raise NotImplementedError

    async def undeclared(job: JobContext) -> Any: ...

    assert built(declared).dump_result(Strict(day=date(2026, 1, 1))) == {"day": "2026-01-01"}
    marker = object()
    assert built(undeclared).dump_result(marker) is marker


class Inner(BaseModel):
    value: Any = None


class Outer(BaseModel):
    known: float = 0.0
    inner: Inner | None = None
    rest: dict[str, Any] = {}


@dataclass
class Record:
    rows: list[Any]


class Odd(BaseModel):
    value: Any

    @field_serializer("value", when_used="json")
    def say(self, value: Any) -> str:
        return str(value)


@pytest.mark.parametrize(
    ("declared", "result", "words"),
    [
        (float, NAN, "the result is nan"),
        (dict[str, Any], {"a": NAN}, r"the result\.a is nan"),
        (Outer, Outer(known=NAN), r"the result\.known is nan"),
        (Outer, Outer(inner=Inner(value=math.inf)), r"the result\.inner\.value is inf"),
        (Outer, Outer(rest={"a": None, "b": [1, NAN]}), r"the result\.rest\.b\[1\] is nan"),
        (list[Outer], [Outer(), Outer(rest={"a": -math.inf})], r"the result\[1\]\.rest\.a is -inf"),
        (Record, Record([None, NAN]), r"the result\.rows\[1\] is nan"),
        (set[Any], {1.0, NAN}, "the result is nan"),
        (Any, Outer(inner=Inner(value=NAN)), r"the result\.inner\.value is nan"),
    ],
)
def test_what_json_cannot_say_never_becomes_null(declared: Any, result: Any, words: str) -> None:
    handler = returning(declared)
    with pytest.raises(FreeJsonError, match=words):
        normalize(handler.dump_result(result), what="the result")


def test_a_null_of_ones_own_and_a_serializer_of_ones_own_are_left_alone() -> None:
    assert returning(Outer).dump_result(Outer(rest={"a": None})) == {
        "known": 0.0,
        "inner": None,
        "rest": {"a": None},
    }
    assert returning(list[Odd]).dump_result([Odd(value=NAN)]) == [{"value": "nan"}]
    both = returning(tuple[Odd, None]).dump_result((Odd(value=NAN), None))
    assert both == [{"value": "nan"}, None]


def returning(declared: Any) -> Handler:
    async def work(job: JobContext) -> Any: ...

    work.__annotations__["return"] = declared
    return built(work)


def test_an_app_knows_its_handlers_and_their_policy() -> None:
    app = WorkerApp()
    app.handler("t", timeout=30, retry=RetryPolicy(max_retries=1))(takes_both)
    policy = app.handlers["t"].policy
    assert (policy.execution_timeout_seconds, policy.max_retries) == (30, 1)
    assert policy.jitter is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"timeout": 0}, "timeout is 0, not a whole number of seconds from 1"),
        ({"lease": 4}, "lease is 4, not a whole number of seconds from 5 to 600"),
        ({"concurrency": 0}, "concurrency is 0, not a whole number of at least 1"),
        ({"concurrency": 1.5}, "concurrency is 1.5, not a whole number of at least 1"),
        ({"concurrency": "3"}, "concurrency is '3', not a whole number of at least 1"),
        ({"retry": 3}, r"retry is 3, not a RetryPolicy: retry=RetryPolicy\(max_retries=3\)"),
    ],
)
def test_a_policy_that_no_job_could_have_is_refused(options: Any, words: str) -> None:
    with pytest.raises(HandlerError, match=f"handler 't': {words}"):
        WorkerApp().handler("t", **options)(takes_both)


def test_a_handler_has_a_lease_and_a_concurrency_of_its_own() -> None:
    app = WorkerApp()
    app.handler("t", lease=15, concurrency=2)(takes_both)
    handler = app.handlers["t"]
    assert (handler.policy.lease_duration_seconds, handler.concurrency) == (15, 2)


@pytest.mark.parametrize("type_", ["", "-x", "x-", "with space", "x\n", "x" * 129, "ü"])
def test_a_bad_type_is_refused(type_: str) -> None:
    with pytest.raises(HandlerError, match="not a job type"):
        WorkerApp().handler(type_)(takes_both)


def test_a_decorator_that_forgets_the_type_is_refused_and_registers_nothing_silently() -> None:
    forgetful: Any = WorkerApp().handler
    with pytest.raises(HandlerError, match=r'type of its jobs: @app.handler\("takes_both"\)'):
        forgetful(takes_both)


@pytest.mark.parametrize("type_", ["SEND_EMAIL", "report.daily", "a", "x/y-z"])
def test_a_good_type_is_taken(type_: str) -> None:
    app = WorkerApp()
    app.handler(type_)(takes_both)
    assert type_ in app.handlers


class Incomplete(BaseModel):
    part: "DefinedLater"
    other: "DefinedNowhere"  # type: ignore[name-defined]  # noqa: F821


class Complete(BaseModel):
    part: "DefinedLater"


class DefinedLater(BaseModel):
    number: int


@pytest.mark.parametrize("what", ["payload", "result"])
def test_a_type_that_is_nowhere_is_found_at_the_start_and_not_by_the_first_job(what: str) -> None:
    async def work(job: JobContext, payload: Any) -> Any: ...

    work.__annotations__["payload" if what == "payload" else "return"] = Incomplete
    app = WorkerApp()
    app.handler("t")(work)
    with pytest.raises(HandlerError, match=f"'t': its {what} .*'DefinedNowhere' is not defined"):
        app.check()


def test_a_type_may_be_defined_after_the_handler() -> None:
    async def work(job: JobContext, payload: Complete) -> Complete:
        return payload

    app = WorkerApp()
    app.handler("t")(work)
    app.check()
    assert app.handlers["t"].read_payload({"part": {"number": 1}}) == Complete(
        part=DefinedLater(number=1)
    )


def test_two_handlers_for_one_type_are_refused() -> None:
    app, other = WorkerApp(), WorkerApp()
    app.handler("t")(takes_both)
    other.handler("t")(takes_both)
    with pytest.raises(HandlerError, match="two handlers"):
        app.handler("t")(takes_both)
    with pytest.raises(HandlerError, match="two handlers"):
        app.include(other)


def test_an_app_includes_another() -> None:
    app, other = WorkerApp(), WorkerApp()
    other.handler("t")(takes_both)
    other.categorize(KeyError, "Mine")
    app.include(other)
    assert set(app.handlers) == {"t"}
    assert app.categories == {KeyError: "Mine"}


@pytest.mark.parametrize("category", ["", "x" * 65, "two\nlines"])
def test_a_category_that_cannot_be_stored_is_refused(category: str) -> None:
    with pytest.raises(HandlerError, match="not a category"):
        WorkerApp().categorize(KeyError, category)
