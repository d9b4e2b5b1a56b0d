"""Several processes that are one node: who has what, how they meet, and who starts them."""
