"""ValidatingAdmissionPolicies: laws that need the user, free JSON, or many fields."""
