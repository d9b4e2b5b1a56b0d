"""The gateway: the one way in. It checks what is asked, finds the partition, and waits for the answer."""
