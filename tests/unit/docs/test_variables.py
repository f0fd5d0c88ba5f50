"""Every variable that the package reads stands in the settings' page."""

import re
from pathlib import Path

from pidispatch.box.providers import KEY_VARIABLES
from pidispatch.config.settings import Settings

ROOT = Path(__file__).resolve().parents[3]
#: A name of the environment that is read as a literal.
_READ = re.compile(r"""(?:environ(?:\.get\(|\[)|getenv\()\s*["']([A-Za-z_][A-Za-z0-9_]*)["']""")


def read_variables() -> set[str]:
    sources = [path for path in (ROOT / "pidispatch").rglob("*.py") if "job" not in path.relative_to(ROOT).parts]
    return {name for path in sources for name in _READ.findall(path.read_text())}


def test_every_variable_that_is_read_is_documented() -> None:
    page = (ROOT / "docs" / "reference" / "settings.md").read_text()
    fields = {str(field.alias) for field in Settings.model_fields.values()}
    keys = {name for group in KEY_VARIABLES.values() for name in group}
    literals = read_variables()

    assert {"DOCKER_HOST", "PATH"} <= literals
    assert [name for name in sorted(fields | keys | literals) if f"`{name}`" not in page] == []
