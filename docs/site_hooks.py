"""What MkDocs asks for while it builds the site: the API's pages and the links.

All of it is read from the package, so that it cannot fall behind. Pages stay plain Markdown, which
reads well on the web site of a repository too: a name in backticks such as ``agents.EgalUCB``
becomes a link to the API reference here, and a link to a file beside ``docs/`` leads to a copy.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "gym_fairbandits"
API = "api"

_CODE_SPAN = re.compile(r"(?<![`\[])`(?P<path>[a-z]\w*(?:\.\w+)+)(?P<call>\(\w*\))?`(?![`\]])")
_OUTSIDE = re.compile(r"\]\(\.\./(?P<path>[^)#\s]+)")
_ROLE = re.compile(
    r":(?:attr|class|data|func|meth|mod):`(?:(?P<title>[^`<]+) <)?(?P<name>[\w.]+)>?`"
)
_VERBATIM = re.compile(r"(``.*?``|`[^`]*`|^ *>>>.*$)", re.DOTALL | re.MULTILINE)
_EMPHASIS_OR_STAR = re.compile(r"(?<![\w*])\*(?P<words>[^\s*][^*]*)\*(?![\w*])|(?<!\*)\*(?!\*)")
_log = get_plugin_logger("gym_fairbandits")


# --- What MkDocs calls --------------------------------------------------------------------------


def on_config(config: MkDocsConfig) -> None:
    """Add the API reference to the navigation."""
    package.cache_clear()  # `mkdocs serve` builds again when the code changes
    assert config.nav is not None
    config.nav.append({"API reference": _navigation(package())})


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add the pages of the API reference, and the files beside ``docs/`` that pages link to."""
    for module in public_modules():
        files.append(File.generated(config, page_of(module), content=page_text(module)))
    linked = {
        match["path"]
        for file in files.documentation_pages()
        if file.abs_src_path is not None
        for match in _OUTSIDE.finditer(file.content_string)
    }
    for path in sorted(linked):
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Put links into a page that was written by hand."""
    if page.file.generated_by is not None:
        return markdown
    return with_links(_OUTSIDE.sub(r"](\g<path>", markdown), page.file.src_uri)


# --- The package, read without importing it -----------------------------------------------------


@cache
def package() -> griffe.Module:
    """Return the package as its source says it is."""
    loaded = griffe.load(PACKAGE, search_paths=[ROOT])
    assert isinstance(loaded, griffe.Module)
    return loaded


def public_modules() -> list[griffe.Module]:
    """Return the package and all modules below it whose names do not begin with an underscore."""
    return list(_modules_below(package()))


def exports(module: griffe.Module) -> list[str]:
    """Return the names in ``__all__``."""
    return sorted(str(name) for name in module.exports or ())


def anchor(path: str) -> str | None:
    """Return where the reference shows what a path below the package means, or None if nothing.

    What has no entry of its own (an attribute of a dataclass, say) is shown by what it is part of.
    """
    parts = path.split(".")
    found: Any = package()
    shown: str | None = None
    for part in parts:
        try:
            member = found[part]  # inherited ones too
            found = member.final_target if member.is_alias else member
        except (KeyError, griffe.AliasResolutionError):  # no such name, or another package's
            return None
        # What a private module defines is shown with who inherits or exports it.
        is_taken_over = member.is_alias and (member.inherited or _is_exported(member))
        place = found.path if _is_public(found.path) or not is_taken_over else member.path
        if _is_public(place) and (found.is_module or found.has_docstring or _is_exported(found)):
            shown = place
    return shown


# --- Pages of the API reference -----------------------------------------------------------------


def page_of(module: griffe.Module) -> str:
    """Return the path of a module's page."""
    parts = [API, *module.path.split(".")[1:]]
    return "/".join([*parts, "index"] if _modules(module) or module is package() else parts) + ".md"


def page_text(module: griffe.Module) -> str:
    """Return a module's page: what it defines, then where the other names that it exports are.

    What it exports from private modules is shown here too: there is no page for those.
    """
    here: list[tuple[str, Any]] = []
    elsewhere: list[tuple[str, Any]] = []
    for name in exports(module):
        member: Any = module.members.get(name)
        if member is None:
            _log.warning("%s: `%s` must be assigned by itself to be found", module.path, name)
            continue
        target = member.final_target if member.is_alias else member
        home = target if target.is_module else target.module
        is_here = home is module or not _is_public(home.path)
        (here if is_here else elsewhere).append((name, target))
    documented = [name for name, target in here if target.has_docstring]
    lines = _directive(module.path, members=documented, inherited_members=_from_private(here))
    for name in sorted({name for name, _ in here} - set(documented)):
        lines += _directive(f"{module.path}.{name}", show_if_no_docstring=True, heading_level=2)
    if elsewhere:
        lines += ["## Also exported here", ""]
        for name, target in elsewhere:
            told = target.docstring.value.partition("\n")[0] if target.docstring else ""
            link = f"- [`{name}`][{target.canonical_path}]"
            lines.append(": ".join(filter(None, [link, to_markdown(told, target.path)])))
    return "\n".join(lines) + "\n"


def _directive(path: str, **options: Any) -> list[str]:
    listed = [
        f"        {name}: {str(value).lower() if isinstance(value, bool) else value}"
        for name, value in options.items()
    ]
    return [f"::: {path}", "    options:", *listed, ""]


def _from_private(members: list[tuple[str, Any]]) -> list[str]:
    """Return the names that classes inherit from private ones: shown as if they were their own."""
    return sorted(
        {
            name
            for _, target in members
            if target.is_class
            for name, member in target.inherited_members.items()
            if not name.startswith("_") and not _is_public(member.final_target.module.path)
        }
    )


def _navigation(module: griffe.Module) -> list[Any]:
    entries: list[Any] = [page_of(module)]
    for below in _modules(module):
        entry = _navigation(below) if _modules(below) else page_of(below)
        entries.append({below.name: entry})
    return entries


def _modules(module: griffe.Module) -> list[griffe.Module]:
    """Return the public modules right below one, by name; not those that it imports."""
    below = [item for name, item in sorted(module.modules.items()) if not name.startswith("_")]
    return [item for item in below if not item.is_alias]


def _modules_below(module: griffe.Module) -> Iterator[griffe.Module]:
    yield module
    for below in _modules(module):
        yield from _modules_below(below)


def _is_public(path: str) -> bool:
    return not any(part.startswith("_") for part in path.split("."))


def _is_exported(found: Any) -> bool:
    return (
        found.parent is not None and found.parent.is_module and found.name in exports(found.parent)
    )


# --- Links --------------------------------------------------------------------------------------


def with_links(markdown: str, source: str) -> str:
    """Return a page in which names in backticks lead to the API reference.

    A name that begins with a module of the package must exist: else there is a warning.
    """
    modules = {module.name for module in _modules(package())}

    def link(match: re.Match[str]) -> str:
        path = match["path"].removeprefix(f"{PACKAGE}.")
        if path.split(".")[0] not in modules or path.endswith(".py"):
            return match[0]
        found = anchor(path)
        if found is None:
            _log.warning("%s: the package has no %s", source, match["path"])
            return match[0]
        return f"[{match[0]}][{found}]"

    lines, is_code = [], False
    for line in markdown.split("\n"):
        is_code ^= line.lstrip().startswith("```")
        lines.append(line if is_code or line.startswith("#") else _CODE_SPAN.sub(link, line))
    return "\n".join(lines)


def to_markdown(text: str, scope: str) -> str:
    """Return a docstring as Markdown: its roles as links, its stars as stars.

    Args:
        text: The docstring, or a part of it.
        scope: The full path of what it belongs to: names are looked up from there outwards.
    """

    def link(match: re.Match[str]) -> str:
        name = match["name"]
        parts = scope.split(".")[1:]
        outwards = [".".join([*parts[:end], name]) for end in range(len(parts), -1, -1)]
        is_full = name.startswith(f"{PACKAGE}.")
        for path in [name.removeprefix(f"{PACKAGE}.")] if is_full else outwards:
            found = anchor(path)
            if found is not None:
                return f"[`{match['title'] or name}`][{found}]"
        if is_full and _is_public(name):
            _log.warning("%s: the package has no %s", scope, name)
        return f"`{name}`"  # private, or another package's

    parts = _VERBATIM.split(_ROLE.sub(link, text))
    for number in range(0, len(parts), 2):
        parts[number] = _EMPHASIS_OR_STAR.sub(
            lambda match: match[0] if match["words"] else r"\*", parts[number]
        )
    return re.sub(r"::$", ":", "".join(parts), flags=re.MULTILINE)


class Docstrings(griffe.Extension):
    """Makes Markdown of the docstrings before mkdocstrings reads them."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Rewrite every docstring of the package."""
        if pkg.path == PACKAGE:
            self._rewrite(pkg)

    def _rewrite(self, found: griffe.Object) -> None:
        if found.docstring is not None:
            text = to_markdown(found.docstring.value, found.path)
            # The one heading that our style and griffe's call differently.
            found.docstring.value = re.sub(r"^Example:$", "Examples:", text, flags=re.MULTILINE)
        for member in found.members.values():
            if not member.is_alias:
                assert isinstance(member, griffe.Object)
                self._rewrite(member)
