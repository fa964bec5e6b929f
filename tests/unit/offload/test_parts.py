"""Objects of any size, read in parts; a changed object has another version."""

from pathlib import Path

import pytest

from asyncjob.offload import Address, AddressError, ObjectMissingError, Store, StoreRefusedError


def places(folder: Path) -> tuple[Address, list[Address]]:
    root = Address.folder(f"file://{folder}")
    return root.join("rows.csv"), [root]


def test_a_part_of_a_file_is_read_though_the_file_is_over_the_limit(tmp_path: Path) -> None:
    address, roots = places(tmp_path)
    (tmp_path / "rows.csv").write_bytes(bytes(range(100)))
    store = Store(limit=10)
    assert store.stat(address, roots).size == 100
    assert store.read_part(address, roots, 7, 10) == bytes([7, 8, 9])
    assert store.read_part(address, roots, 0, 3) == bytes([0, 1, 2])


def test_a_file_that_is_written_again_has_another_version(tmp_path: Path) -> None:
    address, roots = places(tmp_path)
    (tmp_path / "rows.csv").write_text("a")
    store = Store()
    before = store.stat(address, roots)
    assert store.stat(address, roots) == before
    (tmp_path / "rows.csv").write_text("bb")
    assert store.stat(address, roots).version != before.version


def test_a_part_beyond_the_end_is_refused(tmp_path: Path) -> None:
    address, roots = places(tmp_path)
    (tmp_path / "rows.csv").write_text("abc")
    with pytest.raises(Exception, match="1 bytes have come, not 5"):
        Store().read_part(address, roots, 2, 7)


def test_a_missing_file_a_folder_and_a_way_out_are_refused(tmp_path: Path) -> None:
    address, roots = places(tmp_path)
    with pytest.raises(ObjectMissingError, match="not found"):
        Store().stat(address, roots)
    (tmp_path / "rows.csv").mkdir()
    with pytest.raises(StoreRefusedError, match="not an object"):
        Store().stat(address, roots)
    (tmp_path / "out").symlink_to("/etc")
    outside = roots[0].join("out", "passwd")
    with pytest.raises(AddressError, match="symbolic link"):
        Store().stat(outside, roots)
    with pytest.raises(AddressError, match="symbolic link"):
        Store().read_part(outside, roots, 0, 1)
