"""Any messages, cut anywhere, come out as they went in."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from asyncjob_worker.isolation.protocol import FrameDecoder, encode

texts = st.text(st.characters(codec="utf-8"), max_size=20)
values = st.none() | st.integers(-(2**63), 2**63 - 1) | texts | st.lists(texts, max_size=2)


@given(st.lists(st.dictionaries(texts, values, max_size=3), max_size=5), st.data())
def test_messages_survive_any_cuts(messages: list[dict[str, Any]], data: st.DataObject) -> None:
    stream = b"".join(map(encode, messages))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    decoder = FrameDecoder()
    received: list[Any] = []
    for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        received += decoder.feed(stream[begin:end])
    assert received == messages
