"""The validation rules that the API server enforces on every writer, as data.

A rule is one sentence with an id, which documentation and tests name it by, and its CEL. What one
object must satisfy by itself, and which phase may follow which, becomes a validation in the CRD
(`asyncjob.schema.crd`). Everything else becomes a validation of an admission policy, where reading
a field is cheap and CEL sees fields of unknown type.
"""
