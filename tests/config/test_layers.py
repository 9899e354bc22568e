"""Layers of settings, on a daemon that exists only here: names, order, refusals, origins."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta

from dovetail.config.declaration import SettingsStruct
from dovetail.config.layers import Layers, LoadedSettings
from dovetail.config.values import BadSettings


class OvenRack(SettingsStruct, frozen=True):
    trays: int = 1


class OvenGrill(SettingsStruct, frozen=True):
    level: Annotated[int, Meta(ge=0, le=9, description="How hot.")] = 3
    password: str = "none"


class OvenSettings(SettingsStruct, frozen=True):
    mode: Literal["fan", "grill"] = "fan"
    bell: bool = True
    dishes: tuple[str, ...] = ()
    owners: Mapping[str, bool] = {}
    grill: OvenGrill = OvenGrill()
    racks: Mapping[str, OvenRack] = {}


OVEN = Layers(OvenSettings, "OVEN_")


def load(
    file: Path | None = None, environment: dict[str, str] | None = None, **flags: Any
) -> LoadedSettings[OvenSettings]:
    return OVEN.load(None if file is None else str(file), environment or {}, flags)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "oven.toml"


def test_a_field_is_a_setting_with_three_names() -> None:
    level = OVEN.settings["grill.level"]
    assert (level.key, level.variable, level.flag) == (
        "grill.level",
        "OVEN_GRILL_LEVEL",
        "--grill-level",
    )
    assert (level.argument, level.default, level.description) == ("grill_level", 3, "How hot.")
    assert list(OVEN.sections) == [(), ("grill",)]
    assert OVEN.file_variable == "OVEN_CONFIG"


def test_each_layer_wins_over_the_one_below_and_is_remembered(file: Path) -> None:
    file.write_text("mode = 'grill'\nbell = false\n[grill]\nlevel = 4\n[racks.low]\ntrays = 2\n")
    environment = {"OVEN_GRILL_LEVEL": "5", "OVEN_BELL": "true", "OVEN_MODE": ""}
    settings, origins = load(file, environment, grill_level="6", dishes=None)
    assert settings == OvenSettings(
        mode="grill", grill=OvenGrill(level=6), racks={"low": OvenRack(trays=2)}
    )
    assert origins == {
        "mode": f"file {file}",
        "bell": "environment OVEN_BELL",
        "dishes": "default",
        "owners": "default",
        "grill.level": "flag --grill-level",
        "grill.password": "default",
        "racks": f"file {file}",
    }


def test_the_environment_names_the_file_where_no_flag_does(file: Path, tmp_path: Path) -> None:
    file.write_text("mode = 'grill'\n")
    (tmp_path / "other.toml").write_text("bell = false\n")
    environment = {"OVEN_CONFIG": str(file)}
    assert load(None, environment).settings == OvenSettings(mode="grill")
    assert load(tmp_path / "other.toml", environment).settings == OvenSettings(bell=False)


def test_lists_and_maps_are_text_with_commas_in_variables_and_flags() -> None:
    expected = OvenSettings(dishes=("pie", "bread"), owners={"ann": True, "bob": False})
    environment = {"OVEN_DISHES": "pie, bread", "OVEN_OWNERS": "ann=true,bob=false"}
    assert load(None, environment).settings == expected
    assert load(dishes="pie,bread", owners="ann=true, bob=false").settings == expected


def test_a_map_of_structs_is_only_in_files() -> None:
    assert OVEN.settings["racks"].is_only_in_files
    assert load(None, {"OVEN_RACKS": "low=2"}).settings == OvenSettings()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mod = 'fan'", "unknown key mod; did you mean mode?"),
        ("'grill.level' = 4", "unknown key grill.level; did you mean grill.level?"),
        ("zzz = 1", "unknown key zzz; known are mode, bell, dishes, owners, grill.level,"),
        ("grill = 1", "grill is a section: write [grill]"),
        ("[mode]\nfan = 1", "mode: {'fan': 1} is not one of fan, grill"),
        ("[grill]\nlevel = 10", "grill.level: 10 is not a whole number, at least 0 and at most 9"),
        ("[grill]\npassword = 7", "grill.password: '***' is not text"),
        ("dishes = 'pie'", "dishes: 'pie' is not a list, each text"),
        ("[racks.low]\nplates = 1", "racks: Object contains unknown field `plates`"),
    ],
)
def test_what_a_file_says_wrong_is_refused_with_its_place(
    file: Path, text: str, words: str
) -> None:
    file.write_text(text)
    with pytest.raises(BadSettings) as refused:
        load(file)
    assert str(refused.value).startswith(f"{file}: {words}")


@pytest.mark.parametrize(
    ("environment", "flags", "words"),
    [
        ({"OVEN_MODE": "off"}, {}, "environment OVEN_MODE: 'off' is not one of fan, grill"),
        ({"OVEN_OWNERS": "ann"}, {}, "environment OVEN_OWNERS: 'ann' is not of the form KEY=VALUE"),
        ({}, {"owners": "a=true,a=true"}, "--owners: a is given twice"),
        ({}, {"owners": "a=perhaps"}, "--owners: Expected `bool`, got `str`"),
        ({}, {"grill_level": "hot"}, "--grill-level: 'hot' is not a whole number"),
    ],
)
def test_what_variables_and_flags_say_wrong_is_refused_with_their_name(
    environment: dict[str, str], flags: dict[str, str], words: str
) -> None:
    with pytest.raises(BadSettings) as refused:
        load(None, environment, **flags)
    assert str(refused.value).startswith(words)
