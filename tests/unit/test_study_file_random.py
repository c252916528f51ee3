import math
import tomllib
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from study_files import MODEST, read, uncommented
from zhat.errors import StudyFileError
from zhat.study.file import KEYS, read_study_file
from zhat.study.template import template
from zhat.util.toml_lines import key_lines


@MODEST
@given(st.text(st.sampled_from("ab \n[]{}=,.\"'\\#1"), max_size=60))
def test_the_scanner_takes_anything(text):
    lines = key_lines(text)
    assert all(1 <= line <= text.count("\n") + 1 for line in lines.values())


def read_or_refuse(folder: Path, text: str | bytes) -> None:
    path = folder / "my.toml"
    data = text if isinstance(text, bytes) else text.encode(errors="replace")
    path.write_bytes(data)
    try:
        found = read_study_file(path)
    except StudyFileError as error:
        assert str(error).startswith(f"{path}, line ")
        assert 1 <= error.line <= data.count(b"\n") + 1
        assert "; wanted: " in str(error)
    else:
        assert found.budget >= 1
        assert all(math.isfinite(low) and low < high < math.inf for low, high in found.bounds.values())


@MODEST
@given(st.binary(max_size=200) | st.text(max_size=200))
def test_random_files(tmp_path, text):
    read_or_refuse(tmp_path, text)


def toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return '"' + "".join(c if c.isalnum() and c.isascii() else f"\\U{ord(c):08x}" for c in value) + '"'
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml(key)} = {toml(inner)}" for key, inner in value.items()) + "}"
    return repr(value)


WORDS = st.sampled_from(
    ["learn", "auto", "mvs", "energy", "wal", "x", "phi", "a.py:f", "a:f", "3h", "./run", "my.toml", "", "\0"]
)
SCALARS = st.booleans() | st.integers() | st.floats() | WORDS | st.text(max_size=5)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=2), max_leaves=4
)


def section(keys: tuple[str, ...]) -> st.SearchStrategy[dict[str, object]]:
    return st.dictionaries(st.sampled_from(keys) | WORDS, VALUES, max_size=4)


DOCUMENTS = st.fixed_dictionaries(
    {"bounds": st.dictionaries(WORDS, st.lists(st.floats() | st.integers(), min_size=2, max_size=2) | VALUES)},
    optional={name: section(keys) | VALUES for name, keys in KEYS.items() if keys is not None},
)


@MODEST
@given(DOCUMENTS, st.booleans())
def test_random_documents(tmp_path, document, in_lines):
    if in_lines:
        tables = [(name, table) for name, table in document.items() if isinstance(table, dict)]
        lines = [
            [f"[{name}]", *(f"{toml(key)} = {toml(value)}" for key, value in table.items())] for name, table in tables
        ]
        text = "\n".join(line for table in lines for line in table)
    else:
        text = "\n".join(f"{name} = {toml(value)}" for name, value in document.items())
    tomllib.loads(text)
    read_or_refuse(tmp_path, text)


@MODEST
@given(st.sampled_from(["study.seed", "study.noise_std", "run.workers", "energy.command", "bounds.x"]), VALUES)
def test_one_random_value(tmp_path, key, value):
    read_or_refuse(tmp_path, f"study.budget = 3\nbounds.y = [0, 1]\n{key} = {toml(value)}")


@MODEST
@given(st.data())
def test_mutated_templates(tmp_path, data):
    text = data.draw(st.sampled_from([template(), uncommented()]))
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 20)))
        middle = data.draw(st.text(max_size=3) | st.text(st.sampled_from("[]{}=,.\"'\\#\n0"), max_size=3))
        text = text[:start] + middle + text[end:]
    read_or_refuse(tmp_path, text)


@MODEST
@given(
    st.dictionaries(
        st.text(min_size=1, max_size=8).filter(lambda name: name == name.strip()),
        st.tuples(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300)).filter(lambda pair: pair[0] < pair[1]),
        min_size=1,
        max_size=4,
    ),
    st.integers(1, 2**63 - 1),
    st.integers(0, 2**63 - 1),
    st.floats(0.0, 1e300),
)
def test_numbers_and_names_are_read_to_the_last_bit(tmp_path, bounds, budget, seed, noise_std):
    document = {
        "study": {"budget": budget, "seed": seed, "noise_std": noise_std, "periodic": list(bounds)},
        "bounds": {name: list(pair) for name, pair in bounds.items()},
    }
    found = read(tmp_path, "\n".join(f"{name} = {toml(table)}" for name, table in document.items()))
    assert (found.bounds, found.budget, found.seed, found.noise_std) == (bounds, budget, seed, noise_std)
    assert found.periodic == tuple(bounds)
