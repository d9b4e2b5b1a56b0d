"""`holdfast partitions`: the state of single partitions, in a file or an object store."""
