"""The network between a process and the API server fails as it is told to."""

import socket
import threading
from collections.abc import Iterator

import pytest

from asyncjob_chaos.tools.proxy import HANDSHAKE_CHUNKS, Mode, NetworkProxy


@pytest.fixture
def echo() -> Iterator[str]:
    """Serve whoever connects with what it sends."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=answer, args=[connection], daemon=True).start()

        def answer(connection: socket.socket) -> None:
            with connection:
                try:
                    while data := connection.recv(100):
                        connection.sendall(data)
                except OSError:
                    return

        threading.Thread(target=serve, daemon=True).start()
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def proxy(echo: str) -> Iterator[NetworkProxy]:
    with NetworkProxy(echo) as running:
        yield running


def connect(proxy: NetworkProxy) -> socket.socket:
    port = int(proxy.url.rpartition(":")[2])
    return socket.create_connection(("127.0.0.1", port), timeout=5)


def ask(connection: socket.socket) -> bytes:
    try:
        connection.sendall(b"hello")
        return connection.recv(100)
    except ConnectionError:
        return b""


def test_bytes_pass_in_both_directions(proxy: NetworkProxy) -> None:
    with connect(proxy) as connection:
        assert ask(connection) == b"hello"


def test_a_reset_ends_open_connections_and_new_ones(proxy: NetworkProxy) -> None:
    with connect(proxy) as connection:
        assert ask(connection) == b"hello"
        proxy.set(Mode.RESET)
        assert ask(connection) == b""
    with connect(proxy) as another:
        assert ask(another) == b""
    assert proxy.hits >= 2
    proxy.set(Mode.OPEN)
    with connect(proxy) as healed:
        assert ask(healed) == b"hello"


def test_who_is_cut_off_is_not_told_until_the_cut_is_over(proxy: NetworkProxy) -> None:
    with connect(proxy) as connection:
        assert ask(connection) == b"hello"
        proxy.set(Mode.SILENT)
        connection.settimeout(0.3)
        with pytest.raises(TimeoutError):
            ask(connection)
        connection.settimeout(5)
        proxy.set(Mode.OPEN)
        assert ask(connection) == b""


def test_answers_are_lost_once_the_handshake_is_over(proxy: NetworkProxy) -> None:
    with connect(proxy) as connection:
        proxy.set(Mode.LOSE_ANSWERS, share=1.0)
        for _ in range(HANDSHAKE_CHUNKS):
            assert ask(connection) == b"hello"
        assert ask(connection) == b""
    assert proxy.hits == 1
