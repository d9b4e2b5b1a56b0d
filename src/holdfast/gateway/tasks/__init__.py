"""Tasks: submitting, working, incidents and schedules."""
