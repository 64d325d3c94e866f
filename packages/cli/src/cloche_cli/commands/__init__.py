"""One module per command. They import click only; what a command needs to work is imported when it runs."""
