"""`release.json`: what a run of a backfill says of the release that it measured. It lies beside the run's records."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from rnnbench.content_digest import EditedError, intact, text_with_digest
from rnnbench.disk import read_plain, write_bytes
from rnnbench.results import FrozenModel, StoreError

FILE = "release.json"
Ratio = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class ReleaseInfo(FrozenModel):
    """The release that a run measured, and what it was measured beside."""

    package: str
    version: str
    reference: str
    """Version of the same package that was sampled in turn with it."""
    released: str = ""
    """Day of the release, where it is known. The order is that of the versions."""


class ReleaseFile(ReleaseInfo):
    """The content of the file."""

    ratios: dict[str, dict[str, tuple[Ratio, ...]]] = Field(default_factory=dict)
    """By trial and latency path: latency over the reference's, of each pair of processes."""

    @property
    def info(self) -> ReleaseInfo:
        return ReleaseInfo(**self.model_dump(exclude={"ratios"}))


def write_release(run: Path, content: ReleaseFile) -> None:
    """Write the file of a release into a run's folder. Raises OSError."""
    write_bytes(run / FILE, text_with_digest(content.model_dump_json()), durable=True)


def read_release(run: Path) -> ReleaseFile | None:
    """What the file in a run's folder says; None where there is none. Raises StoreError."""
    file = run / FILE
    try:
        return ReleaseFile.model_validate_json(intact(read_plain(file)))
    except FileNotFoundError:
        return None
    except EditedError as error:
        raise StoreError(f"{file}: {error}") from error
    except (OSError, ValidationError, ValueError) as error:
        raise StoreError(f"{file}: is damaged; delete the run, and measure the release again") from error
