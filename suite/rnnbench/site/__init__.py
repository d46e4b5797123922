"""The site: static pages from the history and runs, which open from a disk and from any static host.

`write_site` writes it; start reading at `write.py`. `content.py` gathers what is shown, with the rankings, verdicts and
words of `results`, `history` and `reports`. Each page has a module that makes its content, and a template of that name.
`page.py` renders, and makes hostile text harmless. Needs Jinja and markdown-it, of the extra `site`.
"""

from typing import TYPE_CHECKING

from rnnbench.lazy import lazy_names

if TYPE_CHECKING:
    from rnnbench.site.stored_runs import newest_runs
    from rnnbench.site.write import write_site

__getattr__, __all__ = lazy_names(__name__, __file__)
