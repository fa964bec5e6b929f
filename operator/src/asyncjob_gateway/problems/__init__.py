"""Every error answer, as RFC 9457 has it: what becomes which kind, and how it is sent."""
