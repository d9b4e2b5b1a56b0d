"""Time: due dates of everything that waits for it, and the schedules that create jobs."""
