"""placeholder"""

from pathlib import Path

import numpy as np

SAMPLES_CAP = 4_000
COLUMNS = ("process", "block", "end", "seconds", "disturbed")


def save_samples(run: Path, digest: str, path: str, rows: np.ndarray) -> int:
    if len(rows) > SAMPLES_CAP:
        rows = rows[np.linspace(0, len(rows) - 1, SAMPLES_CAP).astype(int)]
    file = run / "samples" / f"{digest}.{path}.npy"
    file.parent.mkdir(parents=True, exist_ok=True)
    np.save(file, rows)
    return len(rows)
