"""`settings.yaml` of a history: what a person decides about it."""

from __future__ import annotations

from pathlib import Path

import yaml
from pydantic import ValidationError

from rnnbench.results import FrozenModel, StoreError

FILE = "settings.yaml"


class HistorySettings(FrozenModel):
    """The content of the file. It need not be there."""

    anchors: tuple[str, ...] = ()
    """Targets (`backend:route`) whose versions are pinned. Their trials are anchors, beside those of the baseline."""


def read_settings(root: Path) -> HistorySettings:
    """The settings of a history's folder. Raises StoreError."""
    file = root / FILE
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
        return HistorySettings.model_validate({} if content is None else content)
    except FileNotFoundError:
        return HistorySettings()
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "its content"
        raise StoreError(f"{file}: {where}: {first['msg']}; a history has the setting 'anchors', a list") from error
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise StoreError(f"{file}: cannot be read: {error}; correct it, or delete it") from error
