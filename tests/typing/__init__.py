"""What type checkers say of the package's public names."""
