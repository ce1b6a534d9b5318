"""Every setting can be found in the code, in --help and in the environment."""

import inspect

import pytest
import typer

from taproof.cli.main import commands
from taproof.config.options import variable
from taproof.config.settings import OPTIONS, Settings, load_settings


def _options(command: str) -> dict[str, typer.core.TyperOption]:
    group = typer.main.get_command(commands)
    found = group.commands[command]  # type: ignore[attr-defined]
    return {parameter.name: parameter for parameter in found.params if parameter.param_type_name == "option"}


def test_every_setting_is_described() -> None:
    """Every field of Settings has a description, and every description a field."""
    assert Settings.model_fields.keys() == OPTIONS.keys()
    for name, field in Settings.model_fields.items():
        assert field.description == OPTIONS[name].help
        assert field.description.endswith(".")
        assert OPTIONS[name].must.startswith("must ")


@pytest.mark.parametrize("command", ["serve", "doctor"])
def test_every_setting_is_an_option_and_every_option_a_variable(command: str) -> None:
    """`serve` and `doctor` take each setting as an option and as the variable of the same name, and nothing else."""
    options = _options(command)
    assert set(options) - {"help", "as_json"} == set(Settings.model_fields)
    for name in Settings.model_fields:
        assert options[name].envvar == variable(name)
        assert options[name].show_envvar
        assert options[name].opts == [OPTIONS[name].flag]
        assert (options[name].help or "").startswith(OPTIONS[name].help)


def test_options_are_named_like_their_variables() -> None:
    """--tls-cert is TAPROOF_TLS_CERT. The only exception is --database, which is short for TAPROOF_DATABASE_URL."""
    for name, option in OPTIONS.items():
        if name != "database_url":
            assert option.flag == "--" + name.replace("_", "-")


def test_described_defaults_are_the_real_ones() -> None:
    """The defaults in --help are the real ones."""
    for name, field in Settings.model_fields.items():
        if field.default_factory is None and field.default:
            assert getattr(load_settings({name: OPTIONS[name].default}), name) == field.default, name


def test_every_command_says_what_it_does() -> None:
    """Every command has a first line of help that fits into a list."""

    def walk(command: object, path: str) -> None:
        for name, found in getattr(command, "commands", {}).items():
            assert found.help, path
            assert len(inspect.cleandoc(found.help).splitlines()[0]) < 90, f"{path} {name}"
            walk(found, f"{path} {name}")

    walk(typer.main.get_command(commands), "taproof")
