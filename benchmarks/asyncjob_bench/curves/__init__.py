"""How it scales: each curve is measured on a control plane of its own, point by point."""
