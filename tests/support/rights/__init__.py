"""Rights that the chart gives, one by one: who has them, and what shows that they are needed."""

from support.rights.model import Grant, Part, Right, parts_of, rights_of
from support.rights.principals import Principal, PrincipalFactory

__all__ = ["Grant", "Part", "Principal", "PrincipalFactory", "Right", "parts_of", "rights_of"]
