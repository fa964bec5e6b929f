"""A client by REST, through a gateway."""
