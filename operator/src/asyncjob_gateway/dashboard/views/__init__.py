"""What pages show, by pure functions from REST's models: no request, no clock, no HTML."""
