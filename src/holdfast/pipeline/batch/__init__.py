"""What batch operations need of the tables: their items, and what became of them."""
