"""How it is computed: the contract, and one module or folder for each backend."""
