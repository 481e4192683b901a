"""``python -m jacli`` is the same as ``jacli``."""

from jacli.cli import main

if __name__ == "__main__":
    main()
