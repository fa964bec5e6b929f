"""The wheel of programs that `asyncjob-dev[controlplane]` asks for: etcd, API server, kubectl."""
