"""Networks that people ship, a file a family. A module lists its classes in `FAMILIES`."""
