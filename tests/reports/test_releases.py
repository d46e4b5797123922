"""The page of a backfill shows text from outside as text."""

from __future__ import annotations

from rnnbench.reports import Table, write_release_page


def test_sentences_are_a_list_and_hostile_text_stays_text(tmp_path):
    table = Table("bound", ("release", "ratio"), (("1.0 <b>", "1.000"), ("a|b", "—")))
    page = write_release_page("Releases of <x>", ["  one rose\n# no heading", "two"], [table], tmp_path / "new")
    text = page.read_text()
    assert text.startswith("# Releases of &lt;x>\n\n- one rose # no heading\n- two\n\n## bound\n")
    assert "| 1.0 &lt;b> | 1.000 |" in text
    assert "| a\\|b | — |" in text
