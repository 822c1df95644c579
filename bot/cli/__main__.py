"""`python -m bot.cli` is the `twohop` command."""

from bot.cli import main

if __name__ == "__main__":
    main()
