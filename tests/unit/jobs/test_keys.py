"""Names of keys: declared once, and none of them is another's."""

import re

from pidispatch.jobs import keys
from pidispatch.jobs.keys import JOB, KEYS, LOCK, SCHEMA, TAKEN, Key, named
from pidispatch.jobs.scripts import PRELUDE, SCRIPTS, source


def test_a_name_begins_with_the_prefix() -> None:
    name = named("pi:")
    assert name(JOB, "local-1") == "pi:job:local-1"
    assert name(LOCK, "local-1") == "pi:job:lock:local-1"
    assert name(SCHEMA) == "pi:schema"


def test_every_key_is_declared_once_and_says_what_it_holds() -> None:
    assert len({key.name for key in KEYS}) == len(KEYS)
    assert all(all(key) for key in KEYS)
    assert {one for one in vars(keys).values() if isinstance(one, Key)} == set(KEYS)


def test_no_key_can_be_taken_for_that_of_a_row() -> None:
    inside = {key.name.removeprefix("job:").partition("<")[0] for key in KEYS if key.name.startswith("job:")}
    assert inside - {""} == set(TAKEN)


def test_the_scripts_use_no_key_that_is_not_declared() -> None:
    declared = {key.name.partition("<")[0] for key in KEYS}
    for script in SCRIPTS:
        used = set(re.findall(r"key\('([^']+)'", source(script)))
        assert used <= declared, script
        assert source(script).startswith("-- What all scripts share."), PRELUDE
