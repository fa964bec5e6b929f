"""What can happen to etcd, and to those who watch what is in it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import httpx

from asyncjob_chaos.faults.fault import Fault, at_once
from asyncjob_chaos.judging.signs import Sign
from asyncjob_chaos.planes import PlaneNeeds
from asyncjob_chaos.target import FaultTarget, Setup
from asyncjob_chaos.tools.disks import cannot_mount
from asyncjob_chaos.tools.etcd import EtcdClient

QUOTA_MIB: Final = 40
DISK_MIB: Final = 224
PIECE_BYTES: Final = 1 << 20
COMPACTIONS: Final = 2
JUNK_AFTER: Final = 50
DYING_SECONDS: Final = 20.0


def _compact(target: FaultTarget) -> None:
    etcd = EtcdClient(target.plane.etcd)
    for _ in range(COMPACTIONS):
        target.plane.kill_apiserver()
        for number in range(JUNK_AFTER):  # so that nobody has seen the newest version
            etcd.put_junk(number, 16)
        etcd.compact()
        target.plane.start_apiserver()
        target.signs[Sign.API_SERVER_ENDED] += 1
        time.sleep(3.0)


@contextmanager
def _reach_quota(target: FaultTarget) -> Iterator[None]:
    etcd = EtcdClient(target.plane.etcd)
    number = 0
    while etcd.put_junk(number, PIECE_BYTES):
        number += 1
    target.signs[Sign.REFUSED_BY_STORE] += 1
    yield
    etcd.free()


@contextmanager
def _fill_disk(target: FaultTarget) -> Iterator[None]:
    disk, etcd = target.prepared.disk, target.plane.etcd
    assert disk is not None
    disk.fill()
    client, deadline, number = EtcdClient(etcd), time.monotonic() + DYING_SECONDS, 0
    while etcd.running and time.monotonic() < deadline:
        try:
            client.put_junk(number, PIECE_BYTES)
        except httpx.HTTPError:
            break
        number += 1
    etcd.wait(5.0)
    target.signs[Sign.STORE_DIED] += not etcd.running
    yield
    disk.free()
    etcd.start()
    if not target.plane.apiserver.running:
        target.plane.start_apiserver()


FAULTS: Final = (
    Fault(
        name="compaction",
        does="etcd forgets all old versions while the API server starts again, twice: every watch "
        "ends with 410",
        shows=(Sign.WATCH_EXPIRED,),
        act=at_once(_compact),
        hold=1.0,
    ),
    Fault(
        name="etcd-quota",
        does="etcd reaches its quota and refuses writes, until room is made",
        shows=(Sign.REFUSED_BY_STORE,),
        act=_reach_quota,
        hold=6.0,
        setup=Setup(plane=PlaneNeeds(alone=True, quota_mib=QUOTA_MIB)),
    ),
    Fault(
        name="etcd-disk",
        does="etcd's disk is full: it dies, and is started again once there is room",
        shows=(Sign.STORE_DIED,),
        act=_fill_disk,
        hold=3.0,
        setup=Setup(plane=PlaneNeeds(alone=True, disk_mib=DISK_MIB)),
        cannot=cannot_mount,
    ),
)
