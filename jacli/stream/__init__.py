"""Many points: the same program at every row of a file or a stream, each row checked by two readings in bulk."""
