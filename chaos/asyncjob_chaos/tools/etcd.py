"""What an operator of etcd does: compact, defragment, and clear an alarm; and fill it up."""

import base64
from typing import Any, Final

import httpx

from asyncjob_chaos.errors import ChaosError
from asyncjob_dev.process import ManagedProcess

JUNK: Final = b"/chaos/"
JUNK_END: Final = b"/chaos0"
REQUEST_SECONDS: Final = 30.0
HTTP_OK: Final = 200


class EtcdClient:
    """The JSON form of etcd's API, which listens on the port for clients."""

    def __init__(self, process: ManagedProcess) -> None:
        flag = "--advertise-client-urls="
        self._url = next(one.removeprefix(flag) for one in process.argv if one.startswith(flag))

    def compact(self) -> int:
        """Forget all versions before the newest; return how many there have been."""
        revision = int(self._ask("kv/range", key=_text(JUNK))["header"]["revision"])
        self._ask("kv/compaction", revision=str(revision), physical=True)
        return revision

    def put_junk(self, number: int, size: int) -> bool:
        """Store so many bytes; return whether they were taken."""
        body = {"key": _text(JUNK + str(number).encode()), "value": _text(bytes(size))}
        return self._send("kv/put", body).status_code == HTTP_OK

    def free(self) -> None:
        """Delete what `put_junk` has stored, give the room back, and clear the alarm."""
        self._ask("kv/deleterange", key=_text(JUNK), range_end=_text(JUNK_END))
        self.compact()
        self._ask("maintenance/defragment")
        for alarm in self._ask("maintenance/alarm", action="GET").get("alarms", []):
            member = alarm.get("memberID", "0")
            self._ask(
                "maintenance/alarm", action="DEACTIVATE", memberID=member, alarm=alarm["alarm"]
            )

    def _ask(self, path: str, **body: Any) -> Any:
        answer = self._send(path, body)
        if answer.status_code != HTTP_OK:
            raise ChaosError(f"etcd: {path}: {answer.text[:200]}")
        return answer.json()

    def _send(self, path: str, body: dict[str, Any]) -> httpx.Response:
        url = f"{self._url}/v3/{path}"
        return httpx.post(url, json=body, timeout=REQUEST_SECONDS, trust_env=False)


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")
