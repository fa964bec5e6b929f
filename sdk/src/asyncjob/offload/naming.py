"""Names of offloaded objects. Pure.

Results and payloads have a folder each above the namespaces, so that one lifecycle rule of the
store covers all results, and one rule of its access policy a namespace. A result's name holds the
claim that made it: a retry does not meet an earlier attempt's result, nor a fenced attempt that of
its successor.
"""

from typing import Final

from asyncjob.offload.addresses import Address

RESULTS_FOLDER: Final = "results"
PAYLOADS_FOLDER: Final = "payloads"


def result_address(
    store: Address, *, namespace: str, uid: str, attempt: int, claim: str
) -> Address:
    """Return where the result of one attempt lies."""
    return store.join(RESULTS_FOLDER, namespace, uid, f"{attempt}-{claim}.json")


def payload_address(store: Address, *, namespace: str, sha256: str) -> Address:
    """Return where a payload lies: the same content at the same place, however often it is sent."""
    return store.join(PAYLOADS_FOLDER, namespace, f"{sha256}.json")


def default_prefixes(store: Address, namespace: str) -> tuple[Address, ...]:
    """Return what jobs of a namespace may read unless configured otherwise: what is their own."""
    return store.join(PAYLOADS_FOLDER, namespace), store.join(RESULTS_FOLDER, namespace)
