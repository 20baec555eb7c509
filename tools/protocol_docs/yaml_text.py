"""Data as YAML in the style of the specifications: one field a line."""

from typing import Any

import yaml

__all__ = ["yaml_text"]

_FLOW = (("field", "name"), ("version", "server"))
"""The keys of a mapping that is written on one line, if it contains no list."""


class _OneLine(dict[str, Any]):
    """A mapping that is written on one line."""


class _Dumper(yaml.SafeDumper):
    """Indents lists, as the specifications do, and quotes with double quotes."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Open a level; lists are always indented."""
        super().increase_indent(flow, False)

    def choose_scalar_style(self) -> str:
        """Choose the quotes of a scalar that needs them."""
        style: str = super().choose_scalar_style()
        return '"' if style == "'" else style


_Dumper.add_representer(
    _OneLine, lambda dumper, data: dumper.represent_mapping("tag:yaml.org,2002:map", data.items(), flow_style=True)
)


def yaml_text(data: dict[str, Any]) -> str:
    """Return data as YAML text."""
    return yaml.dump(_styled(data), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100_000)


def _styled(data: Any) -> Any:
    if isinstance(data, list):
        return [_styled(item) for item in data]
    if not isinstance(data, dict):
        return data
    styled = {key: _styled(value) for key, value in data.items()}
    lists = any(isinstance(value, list) for value in data.values())
    one_line = not lists and any(set(keys) <= data.keys() for keys in _FLOW)
    return _OneLine(styled) if one_line else styled
