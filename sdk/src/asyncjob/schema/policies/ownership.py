"""Who may write the status of a job: its holder, who is just claiming it, or the operator.

A condition lets the holder through first, so that a worker costs no call to the authorizer. What
answers a wish is the operator's even while a worker holds the job: a holder could swallow a rerun.
`redrives` and `admitted` need no law of their own here, because no write of a holder's may change
them: see `ground.redrive` and `claim.admitted`.
"""

from typing import Final

from asyncjob.names import GROUP, JOBS, VERSION
from asyncjob.schema.laws.expressions import same
from asyncjob.schema.laws.law import Law
from asyncjob.schema.policies.identity import OPERATES, POD, POD_UID
from asyncjob.schema.policies.policy import Policy, Target

_HOLDER: Final = "(was.phase == 'Running' ? was.lease : now.lease)"
_MINE: Final = (
    "(was.phase == 'Running' ? has(was.lease) : claimed && has(now.lease))"
    f" && {POD} != '' && {_HOLDER}.holder == {POD}"
    f" && {POD_UID} != '' && {_HOLDER}.holderUID == {POD_UID}"
)
_OWNER: Final = Law(
    "owner.holder",
    "The status of a job is written by the pod that holds its lease or takes it with this claim, "
    "or by who may `operate` on asyncjobs.",
    f"({_MINE}) || {OPERATES}",
    "(was.phase == 'Running' ? 'the job is held by pod ' + was.lease.holder + ' ('"
    " + was.lease.holderUID + ')' : claimed ? 'the claim is in the name of pod '"
    " + now.lease.holder + ' (' + now.lease.holderUID + ')'"
    " : 'nobody holds the job, it is ' + was.phase) + '; this request comes from '"
    f" + ({POD} == '' ? 'no pod' : 'pod ' + {POD} + ' (' + {POD_UID} + ')')"
    " + ', and ' + request.userInfo.username + ' may not operate on asyncjobs'",
    forbids=True,
)
_ANSWER: Final = Law(
    "owner.rerun",
    "A rerun is acknowledged in reruns by who may `operate` on asyncjobs, not by the holder.",
    f"{same('reruns')} || {OPERATES}",
    forbids=True,
)

OWNERSHIP: Final = Policy(
    name=f"ownership.{GROUP}",
    title="Who may write a job's status.",
    targets=(Target(GROUP, VERSION, (f"{JOBS}/status",)),),
    operations=("UPDATE",),
    conditions={"not-the-holders-own": f"!({_MINE} && {same('reruns')})"},
    laws=(_OWNER, _ANSWER),
)
