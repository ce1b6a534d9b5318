"""A shop with a page for members, who sign in with a messenger account. `./run` starts it."""
