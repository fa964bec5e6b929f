"""How many packages there are to compile, and how many are."""

import pytest

from asyncjob_dev.binaries.packages import ONLY_NOT_LINKED, STANDARD, BuildCounts, read_packages


def line(path: str, *imports: str, version: str = "", compiled: bool = False) -> str:
    return "\t".join([path, version, str(not compiled).lower(), "", ",".join(imports)])


def listed(*lines: str) -> str:
    return "".join(f"{one}\n" for one in lines)


def test_a_package_is_the_same_in_two_programs_if_all_below_it_is() -> None:
    one = read_packages(listed(line("fmt"), line("grpc", "fmt", version="v1")))
    other = read_packages(listed(line("fmt"), line("io"), line("grpc", "fmt", version="v1")))
    assert one[1].content == other[2].content


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_package_that_imports_another_version_is_compiled_again(version: str) -> None:
    one = read_packages(listed(line("net", version="v1"), line("grpc", "net", version="v1")))
    other = read_packages(listed(line("net", version="v2"), line("grpc", "net", version=version)))
    assert one[1].content != other[1].content


def test_a_program_that_is_not_linked_is_compiled_all_the_same() -> None:
    program = "\t".join(["main", "", "true", ONLY_NOT_LINKED, ""])
    (only,) = read_packages(f"{program}\n")
    assert only.compiled


def test_the_whole_is_known_once_every_program_is_listed() -> None:
    counts = BuildCounts(["etcd", "kubectl"])
    assert counts.text() == "looking up the sources"
    counts.count_line("etcd", "go: downloading go.uber.org/zap v1.27.0")
    assert counts.text() == "modules fetched: 1"
    counts.listed("etcd", read_packages(listed(line("fmt"), line("etcd", "fmt"))))
    counts.count_line("etcd", "fmt")
    assert counts.text() == "modules fetched: 1, packages compiled: 1"
    counts.listed("kubectl", read_packages(listed(line("fmt"), line("kubectl", "fmt"))))
    assert counts.text() == "1 of 3 packages"


def test_what_an_earlier_build_has_compiled_counts() -> None:
    counts = BuildCounts(["etcd"])
    counts.listed("etcd", read_packages(listed(line("fmt", compiled=True), line("etcd", "fmt"))))
    assert counts.text() == "1 of 2 packages"
    assert counts.count_line("etcd", "etcd")
    assert counts.text() == "2 of 2 packages"


def test_what_is_no_package_is_not_counted() -> None:
    counts = BuildCounts(["etcd"])
    counts.listed("etcd", read_packages(listed(line("fmt"))))
    assert not counts.count_line("etcd", "# fmt")
    assert counts.text() == "0 of 1 packages"


def test_what_is_compiled_of_the_standard_library_counts_before_and_after_the_list() -> None:
    counts = BuildCounts(["etcd"])
    assert counts.count_line(STANDARD, "fmt")
    assert counts.text() == "looking up the sources, packages compiled: 1"
    counts.listed("etcd", read_packages(listed(line("fmt"), line("io"), line("etcd", "fmt", "io"))))
    assert counts.text() == "1 of 3 packages"
    counts.count_line(STANDARD, "io")
    counts.count_line(STANDARD, "image")
    assert counts.text() == "2 of 3 packages"
