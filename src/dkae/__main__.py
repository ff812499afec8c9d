"""``python -m dkae`` is the command ``dkae``."""

from dkae.cli import main

if __name__ == "__main__":
    main(prog_name="dkae")
