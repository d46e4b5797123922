"""`settings.yaml` of a history: what a person decides about it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, StringConstraints, ValidationError

from rnnbench.results import FrozenModel
from rnnbench.yaml_files import FileError, FileKind, TitleGenerator, problems_of, read_source

FILE = "settings.yaml"
Target = Annotated[str, StringConstraints(pattern=r"^[^\s:]+:[^\s:]+$"), Field(title="a target such as numpy:eager")]


class SettingsError(FileError):
    """The settings of a history cannot be used."""


class HistorySettings(FrozenModel):
    """The content of the file. It need not be there."""

    anchors: Annotated[tuple[Target, ...], Field(title="a list of targets, such as [numpy:eager]")] = ()
    """Targets (`backend:route`) whose versions are pinned. Their trials are anchors, beside those of the baseline."""


KIND = FileKind("the settings of a history", SettingsError)


def read_settings(root: Path) -> HistorySettings:
    """The settings of a history's folder. Raises SettingsError, with line and column."""
    file = root / FILE
    if not file.exists():
        return HistorySettings()
    source = read_source(file, KIND)
    try:
        return HistorySettings.model_validate(source.data)
    except ValidationError as error:
        schema = HistorySettings.model_json_schema(schema_generator=TitleGenerator)
        raise SettingsError(problems_of(error, source, schema)) from error
