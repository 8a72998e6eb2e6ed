"""``python -m evals`` is the same command as ``twogate``."""

from evals.cli.main import main

if __name__ == "__main__":
    main()
