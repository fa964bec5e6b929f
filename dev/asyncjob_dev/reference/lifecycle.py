"""The state diagram and the tables of the lifecycle page, from the transition table."""

from asyncjob.lifecycle.phases import PHASE_DOCS, REASON_DOCS, Phase, Reason
from asyncjob.lifecycle.transitions import TRANSITIONS, Transition
from asyncjob_dev.reference.blocks import table


def diagram() -> str:
    """Return the state diagram in Mermaid's language, one arrow per edge."""
    arrows = [
        f"    {edge.source.value} --> {edge.target.value} : {_actors(edge)}" for edge in TRANSITIONS
    ]
    lines = ["stateDiagram-v2", "    [*] --> Queued : API server", *arrows]
    ends = [f"    {phase.value} --> [*]" for phase in (Phase.SUCCEEDED, Phase.CANCELLED)]
    return "\n".join(["```mermaid", *lines, *ends, "```"])


def phases() -> str:
    """Return the table of phases."""
    return table(
        ("Phase", "Meaning"), [(f"`{phase.value}`", text) for phase, text in PHASE_DOCS.items()]
    )


def edges() -> str:
    """Return the table of edges: who, when, reasons, counters that may grow."""
    return table(
        ("From", "To", "Who", "When", "Reasons", "May grow"),
        [
            (
                f"`{edge.source.value}`",
                f"`{edge.target.value}`",
                _actors(edge),
                edge.description,
                _reasons(edge),
                ", ".join(f"`{name}`" for name in sorted(edge.incremented)),
            )
            for edge in TRANSITIONS
        ],
    )


def reasons() -> str:
    """Return the table of reasons, each with the edges that carry it."""
    return table(
        ("Reason", "Meaning", "On the way to"),
        [(f"`{reason.value}`", text, _targets(reason)) for reason, text in REASON_DOCS.items()],
    )


def _targets(reason: Reason) -> str:
    targets = dict.fromkeys(edge.target.value for edge in TRANSITIONS if reason in edge.reasons)
    return ", ".join(f"`{target}`" for target in targets)


def _reasons(edge: Transition) -> str:
    """Return the reasons; whose each is, where two actors take the edge for different ones."""
    texts = {
        actor.value: ", ".join(
            f"`{reason.value}`" for reason in Reason if reason in edge.reasons_by_actor[actor]
        )
        for actor in sorted(edge.actors)
    }
    if len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    return "; ".join(f"{actor}: {text}" for actor, text in texts.items())


def _actors(edge: Transition) -> str:
    return " or ".join(sorted(actor.value for actor in edge.actors))
