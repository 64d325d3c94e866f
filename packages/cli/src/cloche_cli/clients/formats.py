"""The editor of each format of the table; a module is imported when its format is needed."""

from cloche_cli.clients.edit import Format


def editor(name: str) -> Format:
    """The editor for json, jsonc, toml or yaml."""
    if name == "toml":
        from cloche_cli.clients.toml_edit import TomlFormat

        return TomlFormat()
    if name == "yaml":
        from cloche_cli.clients.yaml_edit import YamlFormat

        return YamlFormat()
    from cloche_cli.clients.json_edit import JsonFormat

    return JsonFormat(comments=name == "jsonc")
