"""Every error answer, as RFC 9457 has it: kinds, what becomes which, and how it is sent."""
