"""Orders that are kept up to date event by event, against what sorting again would say."""

from hypothesis import given
from hypothesis import strategies as st

from asyncjob.lifecycle.job_view import JobView
from asyncjob.lifecycle.phases import Phase
from asyncjob_operator.core.admission.pending_queue import PendingJob, PendingQueue
from asyncjob_operator.core.heap import KeyedHeap
from asyncjob_operator.core.policies.deduplication import DuplicateGroup, dedup_rank
from support.objects.snapshots import job, stamp

NAMES = "abcdef"


def contender(name: str, *, phase: Phase, admitted: bool, created: int) -> JobView:
    view = job(phase, name, admitted=admitted)
    return JobView(
        **{f: getattr(view, f) for f in view.__slots__} | {"creation_timestamp": stamp(created)}
    )


CONTENDERS = st.builds(
    contender,
    st.sampled_from(NAMES),
    phase=st.sampled_from([Phase.QUEUED, Phase.RUNNING, Phase.RETRYING]),
    admitted=st.booleans(),
    created=st.integers(0, 2),
)


@given(st.lists(st.tuples(CONTENDERS, st.booleans())))
def test_the_first_two_contenders_and_each_ones_competitor_are_those_that_sorting_gives(
    events: list[tuple[JobView, bool]],
) -> None:
    contenders, known = DuplicateGroup(), dict[str, JobView]()
    for view, stays in events:
        before = known.pop(view.uid, None)
        if before:
            contenders.discard(before)
        if stays:
            known[view.uid] = view
            contenders.add(view)
        order = [one.uid for one in sorted(known.values(), key=dedup_rank)]
        assert contenders.first_two() == tuple(order[:2])
        assert bool(contenders) is bool(order)
        for uid in NAMES:
            others = [other for other in order if other != f"uid-{uid}"]
            assert contenders.first_other(f"uid-{uid}") == next(iter(others), None)


WAITING = st.builds(
    lambda name, key, priority, since, array: PendingJob(
        name, name, "", key, priority, since, array
    ),
    st.sampled_from(NAMES),
    st.sampled_from(["", "x", "y", "z"]),
    st.integers(-3, 3),
    st.integers(0, 100).map(float),
    st.sampled_from(["", "x", "y"]),
)


class Model:
    """The line as a list that is sorted again for each place."""

    def __init__(self, ageing: int | None) -> None:
        self.ageing = ageing
        self.waiting: dict[str, PendingJob] = {}
        self.turns: dict[str, int] = {}

    def take(self, count: int, shut: frozenset[str]) -> list[PendingJob]:
        taken: list[PendingJob] = []
        while len(taken) < count:
            heads: dict[str, PendingJob] = {}
            for one in sorted(self.waiting.values(), key=lambda one: one.rank(self.ageing)):
                heads.setdefault(one.turn, one)
            open_heads = [one for one in heads.values() if one.key not in shut]
            if not open_heads:
                break
            chosen = min(open_heads, key=self._order)
            self.turns[chosen.turn] = max(self.turns.values(), default=0) + 1
            del self.waiting[chosen.uid]
            taken.append(chosen)
        return taken

    def _order(self, one: PendingJob) -> tuple[int, int, float, str]:
        return (one.priority_tier(self.ageing), self.turns.get(one.turn, 0), one.created, one.uid)


@given(
    st.sampled_from([None, 1, 7, 50]),
    st.lists(
        st.one_of(
            WAITING,
            st.sampled_from(NAMES),
            st.tuples(st.integers(1, 3), st.frozensets(st.sampled_from(["", "x", "y"]))),
        ),
        max_size=40,
    ),
)
def test_the_line_gives_places_in_the_order_that_sorting_again_gives(
    ageing: int | None, events: list[PendingJob | str | tuple[int, frozenset[str]]]
) -> None:
    line, model = PendingQueue(ageing), Model(ageing)
    for event in events:
        match event:
            case PendingJob():
                line.add(event)
                model.waiting[event.uid] = event
            case str():
                assert line.discard(event) is (model.waiting.pop(event, None) is not None)
            case (count, shut):
                taken = line.pop(count, lambda key: key not in shut)  # used at once
                assert taken == model.take(count, shut)
        assert len(line) == len(model.waiting)


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.none() | st.integers(0, 5).map(float))))
def test_a_keyed_heap_knows_the_least_of_what_was_set_last(
    events: list[tuple[str, float | None]],
) -> None:
    heap: KeyedHeap[float] = KeyedHeap()
    model: dict[str, float] = {}
    for key, at in events:
        heap.set(key, at)
        if at is None:
            model.pop(key, None)
        else:
            model[key] = at
        least = min(((at, key) for key, at in model.items()), default=None)
        assert heap.first() == least
        assert len(heap) == len(model)
