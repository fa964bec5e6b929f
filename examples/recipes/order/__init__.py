"""An order in three steps, and what undoes them if one cannot be done."""
