"""Study files that are far too large, or whose keys are: read or refused in no time."""

import time

import pytest

from study_files import SHORTEST, read, refused, study
from zhat.util.toml_lines import MOST_PARTS, key_lines

SIZE = 100_000
PARTS = ".".join("a" for _ in range(SIZE // 2))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"[{PARTS}]\n{SHORTEST}", "line 1: '[a.a.a"),
        (f"{SHORTEST}{PARTS} = 1\n", "line 5: 'a.a.a"),
        (f"{SHORTEST}y = {{ {PARTS} = 1 }}\n", "line 5: 'y = { a.a.a"),
        ("[" + PARTS.replace("a", "'a'") + "]\n" + SHORTEST, "line 1: \"['a'.'a'"),
        (SHORTEST + "y = " + "{a=" * (SIZE // 3), "line 5: 'y = {a={a="),
        (f"[{'a' * SIZE}]\n{SHORTEST}", "line 1: 'aaaa"),
        (study(f"{'a' * SIZE} = 1"), "line 3: study.'aaaa"),
        (SHORTEST.replace("9", '"' + "9" * SIZE + '"'), "line 2: study.budget is '999"),
    ],
    ids=["header", "key", "inline key", "quoted", "inline tables", "name", "name of a key", "value"],
)
def test_a_study_file_with_something_huge_is_refused_in_no_time(tmp_path, text, problem):
    begun = time.perf_counter()
    error = refused(tmp_path, text)
    # A minute and more before; a busy machine should not fail it.
    assert time.perf_counter() - begun < 5.0
    assert problem in str(error)
    assert len(str(error)) < 1000


def test_files_that_are_no_study_files_at_all(tmp_path):
    error = refused(tmp_path, "# filler\n" * 200_000)
    assert "it has more than 1,000,000 bytes" in str(error)


def test_keys_of_as_many_parts_as_are_read(tmp_path):
    parts = [f"p{i}" for i in range(MOST_PARTS)]
    assert f"study.{parts[0]}" in str(refused(tmp_path, study(f"{'.'.join(parts)} = 1")))
    assert key_lines(f"[{'.'.join(parts)}]\n")[tuple(parts)] == 1
    assert f"more than {MOST_PARTS} parts" in str(refused(tmp_path, study(f"{'.'.join([*parts, 'q'])} = 1")))


def test_many_comments_and_axes_do_no_harm(tmp_path):
    axes = "".join(f"axis{i} = [0, 1] # {'x' * 50}\n" for i in range(1000))
    begun = time.perf_counter()
    assert len(read(tmp_path, SHORTEST + axes).bounds) == 1001
    assert time.perf_counter() - begun < 5.0
