"""Laws that the API server itself holds everyone to, as data.

A law is one sentence with an id; documentation and tests name it by that. What one object has to
be like by itself, and which phase may follow which, is a rule in the CRD. All else is a validation
in an admission policy: there CEL sees fields of unknown type, and reading a field is cheap.
"""
