"""Each runtime's own tool to time an artifact: one module for each backend that has one, named as the backend."""
