"""rnnbench: RNN execution strategies, compared across compilers."""

__version__ = "0.1.0"
