"""``jacli check``: witnesses side by side, claims derived by hand, and functions of one's own."""
