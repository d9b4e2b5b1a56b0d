"""Members of a cluster: who has which partitions, and how they come to move."""
