"""The pages: a module and a template for each, and one table of them."""
