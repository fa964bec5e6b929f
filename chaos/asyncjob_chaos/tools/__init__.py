"""What faults are made with: proxies, clocks, small disks, memory limits, etcd's own API."""
