"""Commands that go to every partition: what is under way, and how to help it."""
