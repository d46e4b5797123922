"""What adapters share. It is not a backend."""
