"""Incidents: what a person has to look at; each is retried or discarded, one by one."""
