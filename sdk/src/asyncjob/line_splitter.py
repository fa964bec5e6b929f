"""Lines out of pieces of any size, as connections give them."""


class LineSplitter:
    """Puts lines together. What a line costs grows with its length, in however many pieces."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the lines that the piece completes, without their ends."""
        first, *lines = piece.split(b"\n")
        self._begun.append(first)
        if not lines:
            return []
        whole = b"".join(self._begun)
        self._begun = [lines.pop()]
        return [whole, *lines]
