"""`holdfast cluster`, and a member of a cluster that serves."""
