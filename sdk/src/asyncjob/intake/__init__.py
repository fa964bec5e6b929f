"""What a submission becomes: checked, named, and known again when it comes a second time. Pure.

Gateway, clients and command line all submit by this, so that the same key names the same job
whichever way it comes. It must not know how anything is sent.
"""

from asyncjob.intake.content import fingerprint_of, fingerprint_of_job
from asyncjob.intake.errors import InvalidSubmissionError
from asyncjob.intake.naming import dedup_name_prefix, key_name, sequence_name, sequence_of
from asyncjob.intake.order import JobManifest, build_manifest
from asyncjob.intake.reading import read_submission
from asyncjob.intake.verdict import Match, match_existing

__all__ = [
    "InvalidSubmissionError",
    "JobManifest",
    "Match",
    "build_manifest",
    "dedup_name_prefix",
    "fingerprint_of",
    "fingerprint_of_job",
    "key_name",
    "match_existing",
    "read_submission",
    "sequence_name",
    "sequence_of",
]
