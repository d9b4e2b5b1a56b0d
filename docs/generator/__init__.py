"""The pages of docs/reference: one function a page, each reads the code and returns the text."""
