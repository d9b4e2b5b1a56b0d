"""The order of a cluster: ticks, a ring of members, cuts, and what etcd keeps of them."""
