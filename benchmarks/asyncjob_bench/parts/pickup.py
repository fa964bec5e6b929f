"""How soon an idle worker begins a job: from the create's answer to the handler's first line."""

from asyncjob.names import JOBS, collection_path
from asyncjob_bench.ground import templates
from asyncjob_bench.ground.handlers import STAMP, STAMPS_VARIABLE
from asyncjob_bench.parts.crew import start_stack
from asyncjob_bench.parts.flow import submit
from asyncjob_bench.parts.part import Numbers, PartContext
from asyncjob_bench.reckoning.spread import quantile

WARM_UP = 10
NANOSECONDS_PER_MS = 1e6


def measure_pickup(bench: PartContext) -> Numbers:
    """Return both ends of the wait, beside a create's round trip in the same seconds."""
    scale = bench.scale
    with bench.site.space("pickup") as space:
        stamps = str(space.folder / "stamps")
        running = start_stack(
            bench.site,
            space,
            workers=scale.workers,
            slots=scale.slots,
            **{STAMPS_VARIABLE: stamps},
        )
        with running:
            answer = submit(
                space,
                templates.job(space.name, templates.submission(kind=STAMP)),
                scale.pickups,
                prefix="job-",
                way="one-by-one",
                path=collection_path(space.name, JOBS),
                connections=1,
                warm_up=WARM_UP,
                stamps=stamps,
            )
    trips, pickups = answer["round_trips"], answer["pickups"]
    return {
        "write_round_trip_ms": quantile(trips, 0.5) / NANOSECONDS_PER_MS,
        "pickup_p50_ms": quantile(pickups, 0.5) / NANOSECONDS_PER_MS,
        "pickup_p99_ms": quantile(pickups, 0.99) / NANOSECONDS_PER_MS,
    }
