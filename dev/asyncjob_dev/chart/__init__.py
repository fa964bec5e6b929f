"""What the Helm chart takes from elsewhere: copies of roles, and the table of its values."""
