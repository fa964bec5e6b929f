"""From a submission to the manifest of a job: checked, named, and recognised when it comes again.

Gateway, clients and command line all submit through this package, so that the same key names the
same job whichever way it comes. Pure: it does not know how anything is sent.
"""

from asyncjob.submission.errors import InvalidSubmissionError
from asyncjob.submission.manifest import (
    JobManifest,
    build_manifest,
    dedup_name_prefix,
    fingerprint_of,
    fingerprint_of_job,
    key_name,
    sequence_name,
    sequence_of,
)
from asyncjob.submission.matching import Match, match_existing
from asyncjob.submission.validation import read_submission

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
