"""docs/cases.md tells what is: its examples load or are refused as it says, and its tables have every key."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rnnbench.cases import CaseError, load_case
from rnnbench.cases.schema import LEAVES, CompareSection, LimitsSection, MeasureSection

PAGE = (Path(__file__).parents[2] / "docs" / "cases.md").read_text(encoding="utf-8")
WHOLE, *MISTAKEN = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
REFUSALS = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)


(PROGRAM,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def load(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch):
    (name,) = re.findall(r"^name: (\w+)$", text, re.MULTILINE)
    monkeypatch.chdir(folder)
    Path(f"{name}.yaml").write_text(text, encoding="utf-8")
    return load_case(f"{name}.yaml")


def test_the_whole_case_has_as_many_points_as_the_page_counts(tmp_path, monkeypatch):
    assert len(load(WHOLE, tmp_path, monkeypatch).points) == 24 - 4 + 1


def test_the_case_in_python_makes_trials():
    names: dict[str, object] = {}
    exec(PROGRAM, names)
    assert len(names["trials"]) == 2 * 3 * 2


@pytest.mark.parametrize(("text", "told"), list(zip(MISTAKEN, REFUSALS, strict=True)), ids=["mistaken", "impossible"])
def test_mistakes_are_told_as_the_page_shows_them(text, told, tmp_path, monkeypatch):
    with pytest.raises(CaseError) as caught:
        load(text, tmp_path, monkeypatch)
    assert f"{caught.value}\n" == told


def test_the_tables_have_every_key_and_no_other():
    keys = {f"{section}.{leaf}" for leaf, section in LEAVES.items()}
    keys |= {f"limits.{key}" for key in LimitsSection.model_fields}
    keys |= {f"measure.{key}" for key in MeasureSection.model_fields}
    keys |= {f"compare.{key}" for key in CompareSection.model_fields}
    assert set(re.findall(r"^\| `(\w+\.\w+)`", PAGE, re.MULTILINE)) == keys
