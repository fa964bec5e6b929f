"""One trace over submission, claims, attempts and child jobs, by OpenTelemetry where it is wanted.

Nothing here loads OpenTelemetry unless the environment asks for spans or somebody else has loaded
it: the W3C trace context that jobs carry is plain text, and is read and written as such.
"""
