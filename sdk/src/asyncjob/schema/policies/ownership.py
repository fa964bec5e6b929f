"""Who may write the status of a job: its holder, who is just claiming it, or the operator.

What each of them may write follows from the table of transitions. A condition lets a holder through
first that takes an edge of a worker's, so that a worker costs no call to the authorizer. It goes by
the name of the worker's account: one that is called otherwise is asked whether it may `operate`,
because an operator's pod could else claim jobs in its own name and have them succeed.

What answers a wish is the operator's even while a worker holds the job: a holder could swallow a
rerun. `redrives` and `admitted` need no law of their own here, because no write of a holder's may
change them: see `ground.redrive` and `claim.admitted`.
"""

from typing import Final

from asyncjob.lifecycle.transitions import EDGES, Actor
from asyncjob.names import GROUP, JOBS, VERSION
from asyncjob.schema.laws.expressions import all_of, one_of, same, same_json
from asyncjob.schema.laws.law import Law
from asyncjob.schema.policies.identity import IS_WORKER, OPERATES, POD, POD_UID
from asyncjob.schema.policies.policy import Policy, Target

_HOLDER: Final = "(was.phase == 'Running' ? was.lease : now.lease)"
_MINE: Final = (
    "(was.phase == 'Running' ? has(was.lease) : claimed && has(now.lease))"
    f" && {POD} != '' && {_HOLDER}.holder == {POD}"
    f" && {POD_UID} != '' && {_HOLDER}.holderUID == {POD_UID}"
)
_STEP: Final = "(was.phase + '>' + now.phase + ':' + now.?reason.orValue(''))"


def _steps(actor: Actor) -> list[str]:
    """Return the changes of phase that are an actor's, each with a reason; empty for none."""
    return [
        f"{edge.source}>{edge.target}:{reason}"
        for edge in EDGES
        if actor in edge.by
        for reason in sorted(map(str, edge.by[actor])) or [""]
    ]


_HOLDERS: Final = _steps(Actor.WORKER)
_OPERATORS: Final = _steps(Actor.OPERATOR)
_SHARED_EDGES: Final = {step.split(":")[0] for step in _HOLDERS}

# Which steps there are at all is what `transition.pair` and `transition.reason` are about.
_NOT_OPERATORS: Final = one_of(step for step in _HOLDERS if step not in _OPERATORS)
_NOT_HOLDERS: Final = one_of(
    # On all other edges of the operator's nobody holds the job.
    step
    for step in _OPERATORS
    if step not in _HOLDERS and step.split(":")[0] in _SHARED_EDGES
)

# A claim, a heartbeat and a success have no reason: the commonest writes cost one look more.
_OWN_STEP: Final = f"(!has(now.reason) || !({_STEP} in {_NOT_HOLDERS}))"

# Every field but one, those that are added some day included.
_ONLY_RERUNS: Final = (
    "dyn(now).all(key, key == 'reruns' || dyn(was)[?key] == optional.of(dyn(now)[key]))"
    " && dyn(was).all(key, key == 'reruns' || key in dyn(now))"
)

# What the next attempt goes on from: with it, taking a job away could decide how that one ends.
_SAME_WORK: Final = all_of((same("progress"), same_json("now", "checkpoint")))

_OWNER: Final = Law(
    "owner.holder",
    "The status of a job is written by the pod that holds its lease or takes it with this claim, "
    "or by who may `operate` on asyncjobs.",
    "variables.mine || variables.operates",
    "(was.phase == 'Running' ? 'the job is held by pod ' + was.lease.holder + ' ('"
    " + was.lease.holderUID + ')' : claimed ? 'the claim is in the name of pod '"
    " + now.lease.holder + ' (' + now.lease.holderUID + ')'"
    " : 'nobody holds the job, it is ' + was.phase) + '; this request comes from '"
    f" + ({POD} == '' ? 'no pod' : 'pod ' + {POD} + ' (' + {POD_UID} + ')')"
    " + ', and ' + request.userInfo.username + ' may not operate on asyncjobs'",
    forbids=True,
)
# A message is evaluated without the authorizer: it cannot ask who `operates`, nor who `holds`.
_EDGE: Final = Law(
    "owner.edge",
    "The phase is changed by whom the table of transitions names, for that actor's reasons: who "
    "may `operate` neither claims a job nor has it succeed, and a holder does not find its own "
    "lease expired.",
    f"!moved || (variables.holds ? {_OWN_STEP} : !({_STEP} in {_NOT_OPERATORS}))",
    "'from ' + was.phase + ' to ' + now.phase + (has(now.reason) ? ' for ' + now.reason : '')"
    f" + ' is not for ' + ({_STEP} in {_NOT_HOLDERS} ? 'the holder of the job'"
    " : request.userInfo.username + (variables.mine ? ', which may operate on asyncjobs and so"
    " holds none: give workers an account without that verb' : ', which holds no job'))",
    forbids=True,
)
_RUNNING: Final = Law(
    "owner.running",
    "While a job runs, only its holder changes anything of its status; who may `operate` "
    "acknowledges a rerun in reruns, and takes the job away with progress and checkpoint as they "
    "are.",
    f"was.phase != 'Running' || variables.holds || (moved ? {_SAME_WORK} : {_ONLY_RERUNS})",
    "'the job is held by pod ' + was.lease.holder + ' (' + was.lease.holderUID"
    " + '): ' + (moved ? 'others end it with the progress and the checkpoint that it has'"
    " : 'while it runs others change nothing of its status but reruns')",
    forbids=True,
)
_ANSWER: Final = Law(
    "owner.rerun",
    "A rerun is acknowledged in reruns by who may `operate` on asyncjobs, not by the holder.",
    f"{same('reruns')} || variables.operates",
    forbids=True,
)

OWNERSHIP: Final = Policy(
    name=f"ownership.{GROUP}",
    title="Who may write a job's status.",
    targets=(Target(GROUP, VERSION, (f"{JOBS}/status",)),),
    operations=("UPDATE",),
    conditions={
        "not-the-holders-own": f"!({_MINE} && {same('reruns')} && {_OWN_STEP} && {IS_WORKER})"
    },
    variables={
        "mine": _MINE,
        "operates": OPERATES,
        "holds": "variables.mine && !variables.operates",
    },
    laws=(_OWNER, _EDGE, _RUNNING, _ANSWER),
)
