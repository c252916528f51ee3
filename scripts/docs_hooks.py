"""Hooks of the documentation's build: links to examples and results work in the site too, and exponents are raised."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

#: Folders beside docs/ that pages link to.
BESIDE = ("examples", "benchmarks/results")
ENDINGS = (".py", ".toml", ".sh", ".c", ".csv")
#: Code and tags, which are left alone, and exponents as pages write them: e^{-λf}.
LEFT_ALONE = re.compile(r"(<pre.*?</pre>|<code.*?</code>|<[^>]+>)", re.DOTALL)
#: What the plugin that makes the search work from a file would fetch, and what takes its place.
FETCHED = re.compile(r'<script src="https://unpkg\.com/iframe-worker/shim"></script>')
SCRIPT = "javascripts/search-from-file.js"
EXPONENT = re.compile(r"\^\{([^{}]*)\}")


def on_files(files: Any, config: Any) -> Any:
    """Add the examples and the results, as they are, to the files of the site."""
    root = Path(config.config_file_path).parent
    for path in sorted(path for folder in BESIDE for path in (root / folder).rglob("*")):
        if path.suffix in ENDINGS and "__pycache__" not in path.parts:
            uri = path.relative_to(root).as_posix()
            files.append(File.generated(config, uri, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turn links that leave docs/ for these folders, as they are in the repository, into links within the site."""
    depth = page.file.src_uri.count("/")
    return re.sub(rf"\]\((?:\.\./){{{depth + 1}}}({'|'.join(BESIDE)})/", rf"]({'../' * depth}\1/", markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Raise exponents."""
    parts = LEFT_ALONE.split(html)
    # Every second part is what the expression matched.
    parts[::2] = [EXPONENT.sub(r"<sup>\1</sup>", part) for part in parts[::2]]
    return "".join(parts)


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Put a script of ours, at its place, for the one that a page would fetch from elsewhere."""
    return FETCHED.sub(f'<script src="{"../" * page.url.count("/")}{SCRIPT}"></script>', output)


def on_post_template(output: str, **_: Any) -> str:
    """Do the same for pages without Markdown, which lie at the root."""
    return FETCHED.sub(f'<script src="{SCRIPT}"></script>', output)
