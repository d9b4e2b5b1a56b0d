"""The gateway: the one way in. It checks what is asked and finds who has the answer."""
