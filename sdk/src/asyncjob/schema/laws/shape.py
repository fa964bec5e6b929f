"""What one object has to be like by itself; rules of a CRD, where an error names the field."""

from typing import Final

from asyncjob.schema.laws.law import Rule

SHAPE_ONE_SOURCE: Final = Rule(
    "shape.one-source",
    "A payload comes from exactly one of secretKeyRef, configMapKeyRef and uri.",
    "[has(self.secretKeyRef), has(self.configMapKeyRef), has(self.uri)].filter(set, set).size()"
    " == 1",
)
SHAPE_DEADLINE: Final = Rule(
    "shape.deadline",
    "notAfter is later than notBefore.",
    "!has(self.notAfter) || !has(self.notBefore) || self.notAfter > self.notBefore",
)
SHAPE_DEPENDENCIES: Final = Rule(
    "shape.dependencies",
    "dependsOn names each job once.",
    "self.all(one, self.exists_one(other, other.name == one.name))",
)
SHAPE_DELAYS: Final = Rule(
    "shape.delays",
    "maxDelaySeconds is not less than initialDelaySeconds.",
    "!has(self.maxDelaySeconds) || !has(self.initialDelaySeconds)"
    " || self.maxDelaySeconds >= self.initialDelaySeconds",
)
