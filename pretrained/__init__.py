"""The shipped models, and the commands that made and that measure them."""
