"""Settings in layers: systems facts 2.6, decision D22."""

from __future__ import annotations

from pathlib import Path

import pytest

from cloche_contract.errors import ConfigurationInvalid, ProviderUnknown
from cloche_contract.settings import SETTINGS
from cloche_sdk import Doors, Settings, load_settings


def _load(tmp_path: Path, environ: dict[str, str] | None = None, **files: str) -> Settings:
    """Settings from files named `workdir_env`, `home_env` and `toml`."""
    home, workdir = tmp_path / "home", tmp_path / "work"
    (home / ".abx").mkdir(parents=True, exist_ok=True)
    workdir.mkdir(exist_ok=True)
    places = {
        "workdir_env": workdir / ".env",
        "home_env": home / ".abx" / ".env",
        "toml": home / ".abx" / "config.toml",
    }
    for name, text in files.items():
        places[name].write_text(text)
    return load_settings(environ or {}, home=home, workdir=workdir)


def test_each_layer_wins_over_those_below_it(tmp_path: Path) -> None:
    """argument > environment > ./.env > ~/.abx/.env > ~/.abx/config.toml > default."""
    toml = "[core]\nprovider = 'from-toml'\n"
    assert _load(tmp_path).text("provider") is None
    assert _load(tmp_path, toml=toml).text("provider") == "from-toml"
    assert _load(tmp_path, home_env="ABX_PROVIDER=from-home\n").text("provider") == "from-home"
    assert _load(tmp_path, workdir_env="ABX_PROVIDER=from-work\n").text("provider") == "from-work"
    settings = _load(tmp_path, {"ABX_PROVIDER": "from-environment"})
    assert settings.text("provider") == "from-environment"
    assert settings.override(provider="from-argument").text("provider") == "from-argument"


def test_a_layer_can_be_named(tmp_path: Path) -> None:
    """So that a person finds where a value comes from."""
    settings = _load(tmp_path, {"ABX_LOG_LEVEL": "INFO"}, home_env="ABX_PROVIDER=local")
    assert settings.layer("log_level") == "environment"
    assert settings.layer("provider") == "~/.abx/.env"
    assert settings.layer("http_timeout") == "default"


def test_a_blank_value_is_not_set(tmp_path: Path) -> None:
    """Systems facts 2.6: blank = unset, in each layer."""
    settings = _load(tmp_path, {"ABX_PROVIDER": "  "}, workdir_env="ABX_PROVIDER=''\n", home_env="ABX_PROVIDER=kept\n")
    assert settings.text("provider") == "kept"
    assert settings.override(provider=" ", sandbox_api_key=None) is settings


def test_e15_a_workspace_file_cannot_open_the_network(tmp_path: Path) -> None:
    """Faults E15: a project's file switched the sandbox off. The allowlist is the operator's alone."""
    rules = "ABX_LOCAL_EGRESS=*.example.com\n"
    assert _load(tmp_path, workdir_env=rules).text("local_egress") is None
    assert "local_egress" not in _load(tmp_path, workdir_env=rules).values
    assert (
        _load(tmp_path, {"ABX_LOCAL_EGRESS": "docs.example.org"}, workdir_env=rules).text("local_egress")
        == "docs.example.org"
    )
    assert _load(tmp_path, workdir_env=rules, home_env="ABX_LOCAL_EGRESS=a.org\n").text("local_egress") == "a.org"
    toml = "[local]\negress = 'b.org'\n"
    assert _load(tmp_path, workdir_env=rules, home_env="", toml=toml).text("local_egress") == "b.org"
    # A project comes from somebody else: what it may set must not widen what a sandbox, or a stranger, may do.
    assert {setting.key for setting in SETTINGS if setting.workspace} == {
        "default_template",
        "http_timeout",
        "local_end_with",
        "local_runtime_dir",
        "local_state_dir",
        "log_level",
        "output_limit",
        "provider",
        "region",
        "sandbox_api_key",
    }


def test_a_secret_is_never_read_from_toml(tmp_path: Path) -> None:
    """People commit config.toml."""
    toml = "sandbox_api_key = 'key'\n[core]\nsandbox_api_key = 'key'\nABX_SANDBOX_API_KEY = 'key'\n"
    assert _load(tmp_path, toml=toml).text("sandbox_api_key") is None
    assert all(setting.toml is None for setting in SETTINGS if setting.secret)


def test_a_value_never_shows_in_a_repr(tmp_path: Path) -> None:
    """A secret in a traceback is a secret lost."""
    settings = _load(tmp_path, {"ABX_SANDBOX_API_KEY": "key-that-is-secret"})
    assert "key-that-is-secret" not in repr(settings)
    assert "key-that-is-secret" not in repr(
        Doors(settings=settings, environ={"ABX_SANDBOX_API_KEY": "key-that-is-secret"})
    )


def test_env_files_have_comments_exports_and_quotes(tmp_path: Path) -> None:
    """Nothing in them is expanded or run."""
    text = "# ABX_PROVIDER=no\n\nexport ABX_PROVIDER='local' \nABX_DEFAULT_TEMPLATE=$(id) # note\nbroken line\n"
    settings = _load(tmp_path, workdir_env=text)
    assert settings.text("provider") == "local"
    assert settings.text("default_template") == "$(id)"


@pytest.mark.parametrize(
    ("name", "variable", "value"),
    [
        ("http_timeout", "ABX_HTTP_TIMEOUT", "soon"),
        ("http_timeout", "ABX_HTTP_TIMEOUT", "0"),
        ("log_level", "ABX_LOG_LEVEL", "LOUD"),
    ],
)
def test_a_wrong_value_names_the_setting_and_not_itself(tmp_path: Path, name: str, variable: str, value: str) -> None:
    """D12."""
    settings = _load(tmp_path, {variable: value})
    with pytest.raises(ConfigurationInvalid) as caught:
        settings.integer(name) if name == "http_timeout" else settings.text(name)
    assert caught.value.details == {"setting": variable}
    assert value not in str(caught.value)


def test_broken_toml_is_a_configuration_error(tmp_path: Path) -> None:
    """Not a traceback."""
    with pytest.raises(ConfigurationInvalid):
        _load(tmp_path, toml="[core\n")


def test_local_is_the_default_and_a_key_means_cloud(tmp_path: Path) -> None:
    """D22."""
    assert Doors(settings=_load(tmp_path), environ={}).default_provider == "local"
    keyed = _load(tmp_path, {"ABX_SANDBOX_API_KEY": "k"})
    assert Doors(settings=keyed, environ={}).default_provider == "cloud"
    assert Doors(settings=keyed.override(provider="local"), environ={}).default_provider == "local"


def test_a_provider_that_is_not_installed_is_named_with_those_that_are(tmp_path: Path) -> None:
    """D22: an unknown provider says what there is."""
    doors = Doors(settings=_load(tmp_path), environ={}, providers=lambda: frozenset({"local"}))
    with pytest.raises(ProviderUnknown) as caught:
        doors.provider("cloud")
    assert caught.value.details == {"available": ["local"]}
