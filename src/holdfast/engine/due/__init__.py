"""Due dates: what waits for time on a partition, and what is done when its time has come."""
