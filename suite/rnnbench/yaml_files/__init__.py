"""YAML files that people write: plain data with the place of every key and value, and errors that name it.

errors           `Place`, `Problem` and `FileError`, a line for each problem
source           `read_source`: a file's one document; what YAML does by magic is refused
schema_errors    `problems_of`: Pydantic's errors as problems of the file, in the words of `TitleGenerator`
"""

from rnnbench.yaml_files.errors import FileError, Place, Problem
from rnnbench.yaml_files.schema_errors import TitleGenerator, missing_key, problems_of
from rnnbench.yaml_files.source import (
    MAX_BYTES,
    NO_END,
    FileKind,
    KeyPath,
    Source,
    dotted,
    has_end,
    parse,
    read_source,
)
