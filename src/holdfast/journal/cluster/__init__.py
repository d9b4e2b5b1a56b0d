"""The journal of a cluster: ranges in etcd, entries on a quorum of members' disks."""
