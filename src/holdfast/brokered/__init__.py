"""Members over a journal that a broker keeps; a group spreads the partitions among them."""
