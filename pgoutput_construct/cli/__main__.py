"""The command ``pgoutput``, also ``python -m pgoutput_construct.cli``."""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; without click, say how to install it."""
    try:
        from pgoutput_construct.cli.group import cli

        cli(prog_name="pgoutput")
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        sys.exit("Error: the command line needs click: pip install 'pgoutput-construct[cli]'")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
