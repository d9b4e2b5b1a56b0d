"""The verbs about processes: definitions, instances and messages."""
