"""What a project says of itself, and what could come to be untrue unnoticed: versions, files, targets, forms."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager

import zhat

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
TARGETS = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text("utf-8"), flags=re.MULTILINE))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))


def read(name):
    return yaml.safe_load((ROOT / name).read_text("utf-8"))


def test_the_version_is_in_one_place_and_cited_as_it_is():
    assert "version" not in PROJECT
    assert ProjectMetadata(str(ROOT), PluginManager()).version == zhat.__version__
    assert str(read("CITATION.cff")["version"]) == zhat.__version__
    # Of anything that is no release, there is nothing to look up yet.
    assert re.search(rf"^## {re.escape(zhat.__version__)} \(20\d\d-\d\d-\d\d\)$", text("CHANGELOG.md"), re.MULTILINE)


def test_the_changelog_is_by_release_with_what_is_to_come_first():
    headings = re.findall(r"^## (.*)$", text("CHANGELOG.md"), re.MULTILINE)
    assert headings[0] == "Unreleased"
    kinds = re.findall(r"^### (.*)$", text("CHANGELOG.md"), re.MULTILINE)
    assert set(kinds) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def text(name):
    return (ROOT / name).read_text("utf-8")


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "RELEASING.md", "SECURITY.md", "CODE_OF_CONDUCT.md"])
def test_files_that_are_named_exist(name):
    code = re.findall(r"`([^`\s]+/[^`\s]+)`", text(name))
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text(name)) if "://" not in link]
    # What a build makes, and what a user has.
    named = [path for path in (*code, *links) if not path.startswith(("dist/", "build/"))]
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_no_more_than_three_files_are_to_be_opened():
    section = CONTRIBUTING.split("## Where to add what")[1].split("\n## ")[0]
    rows = [row.split(" | ") for row in section.splitlines() if row.startswith("| a ")]
    assert {row[0].removeprefix("| ") for row in rows} >= {"a kernel", "a method", "a plot", "a problem"}
    for row in rows:
        assert len(set(re.findall(r"`src/[^`]+\.py`", row[1]))) <= 3, row[0]


def test_the_layers_are_those_that_are_tested():
    layers = re.search(r"^LAYERS = \((.*?)^\)", text("tests/unit/test_layers.py"), re.MULTILINE | re.DOTALL)
    tested = [re.findall(r'"(?:zhat\.)?([a-z.]+)"', line) for line in layers[1].strip().splitlines()]
    section = CONTRIBUTING.split("## The layers")[1].split("\n## ")[0]
    told = [re.findall(r"`([a-z.]+)`", row.split("|")[1]) for row in section.splitlines() if row.startswith("| `")]
    assert told == tested


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "RELEASING.md", "SECURITY.md", ".github/pull_request_template.md"])
def test_targets_of_make_that_are_named_exist(name):
    calls = re.findall(r"(?:`|^ {4})make ([a-z -]+)", text(name), re.MULTILINE)
    assert {target for call in calls for target in call.split()} <= TARGETS


def test_the_workflow_calls_targets_that_exist_on_pythons_that_are_allowed():
    workflow = read(".github/workflows/test.yml")
    assert set(workflow["jobs"]) == {"test", "lint", "docs"}
    matrix = workflow["jobs"]["test"]["strategy"]["matrix"]
    targets = {*matrix["target"], *(case["target"] for case in matrix["include"]), "lint", "docs"}
    assert targets == {"test", "test-minimum", "lint", "docs"}
    assert targets <= TARGETS
    commands = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    assert all(re.fullmatch(r"make (\$\{\{ matrix\.target \}\}|[a-z-]+) PYTHON=python", call) for call in commands)
    oldest = PROJECT["requires-python"].removeprefix(">=")
    assert matrix["python"][0] == oldest
    assert {case["python"] for case in matrix["include"]} == {oldest}


def test_hooks_before_a_commit_are_the_tools_that_lint_calls():
    (repository,) = read(".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    called = {tuple(hook["entry"].removeprefix(".venv/bin/").split()[:2]) for hook in repository["hooks"]}
    assert called == {("ruff", "check"), ("ruff", "format"), ("mypy",)}
    assert {hook["language"] for hook in repository["hooks"]} == {"system"}
    recipe = re.search(r"^lint:.*\n((?:\t.*\n)+)", text("Makefile"), re.MULTILINE)[1]
    assert re.findall(r"\$\(BIN\)/(ruff check|ruff format|mypy)", recipe) == ["ruff check", "ruff format", "mypy"]


def test_forms_ask_for_the_version_and_have_no_field_twice():
    assert [form.stem for form in FORMS] == ["bug", "config", "feature", "question"]
    for form in FORMS:
        content = yaml.safe_load(form.read_text("utf-8"))
        if form.stem != "config":
            assert {"name", "description", "body"} <= set(content)
            fields = [field["id"] for field in content["body"]]
            assert len(fields) == len(set(fields))
    bug = {field["id"]: field for field in yaml.safe_load(FORMS[0].read_text("utf-8"))["body"]}
    assert "zhat.__version__" in bug["version"]["attributes"]["description"]
    assert bug["version"]["validations"]["required"]


def test_all_addresses_are_of_one_place():
    addresses = {*PROJECT["urls"].values(), *re.findall(r"https://[^\s>)]+", text("SECURITY.md"))}
    assert {address.split("/")[2] for address in addresses} == {"example.org"}
