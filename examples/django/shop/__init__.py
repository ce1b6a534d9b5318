"""A shop with a members' page, signed in to with a messenger account. `./run` starts it."""
