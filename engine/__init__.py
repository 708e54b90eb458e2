"""The language model: data in, numbers out. Knows torch and numpy, and no screen."""
