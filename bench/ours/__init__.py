"""What our own submitter and worker processes run, as the peers' scripts do for them."""
