"""`holdfast users`, `groups`, `roles`, `tokens` and `permissions`."""
