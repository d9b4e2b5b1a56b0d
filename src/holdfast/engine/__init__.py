"""The meaning: what commands do. Everything here decides and nothing here touches the outside."""
