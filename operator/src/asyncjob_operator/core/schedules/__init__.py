"""What the operator does about an AsyncCronJob: which runs are due, and what becomes of them."""
