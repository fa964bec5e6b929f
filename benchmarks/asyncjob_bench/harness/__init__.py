"""Where it is measured: control plane, worker and operator processes, generators, /proc."""
