"""What the kit promises to offer, exactly."""

import asyncjob.testing


def test_the_kits_public_names_are_these() -> None:
    assert asyncjob.testing.__all__ == [
        "ArrayPhase",
        "ArrayReason",
        "FakeArray",
        "FakeClock",
        "FakeCluster",
        "FakeJob",
        "HandlerCall",
        "HandlerRun",
        "IllegalTransitionError",
        "NotFakedError",
        "Outcome",
        "Phase",
        "Reason",
        "Stop",
        "StuckError",
        "TestKitError",
        "run_handler",
        "run_handler_sync",
    ]
    assert all(hasattr(asyncjob.testing, name) for name in asyncjob.testing.__all__)
