"""Frames: whole messages, whatever the pieces."""

import pytest

from asyncjob_worker.isolation.protocol import FrameDecoder, FrameError, FrameTooLargeError, encode


def test_a_frame_may_arrive_byte_by_byte() -> None:
    decoder = FrameDecoder()
    frame = encode({"a": "ü"})
    for byte in frame[:-1]:
        assert list(decoder.feed(bytes([byte]))) == []
    assert list(decoder.feed(frame[-1:])) == [{"a": "ü"}]


def test_several_frames_may_arrive_in_one_piece() -> None:
    piece = encode({"n": 1}) + encode({"n": 2}) + encode({"n": 3})[:5]
    assert list(FrameDecoder().feed(piece)) == [{"n": 1}, {"n": 2}]


def test_a_message_over_the_limit_is_not_sent_and_its_size_is_told() -> None:
    assert encode({"a": "x" * 12}, limit=20)
    with pytest.raises(FrameTooLargeError, match=r"it has 21 bytes .* takes 20"):
        encode({"a": "x" * 13}, limit=20)


def test_a_frame_over_the_limit_is_refused_before_it_has_arrived() -> None:
    with pytest.raises(FrameTooLargeError, match="16777216 bytes"):
        list(FrameDecoder(limit=100).feed(b"\x01\x00\x00\x00"))


@pytest.mark.parametrize("body", [b"{]", b"[1]", b""])
def test_what_is_no_json_object_is_refused(body: bytes) -> None:
    with pytest.raises(FrameError, match=f"a frame of {len(body)} bytes is n"):
        list(FrameDecoder().feed(len(body).to_bytes(4, "big") + body))
