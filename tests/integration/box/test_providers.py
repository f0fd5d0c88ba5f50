"""Our table of credential variables beside that of the pi in the image."""

import io
import re
import tarfile

import docker

from pidispatch.box.providers import KEY_VARIABLES

TABLE = "/app/node_modules/@earendil-works/pi-ai/dist/env-api-keys.js"


def test_the_table_is_that_of_the_pi_in_the_image(engine: docker.DockerClient, job_image: str) -> None:
    container = engine.containers.create(job_image, network_mode="none")
    try:
        chunks, _ = container.get_archive(TABLE)
        packed = io.BytesIO(b"".join(chunks))
    finally:
        container.remove(force=True)
    with tarfile.open(fileobj=packed) as archive:
        file = archive.extractfile(archive.getmembers()[0])
        assert file is not None
        source = file.read().decode()

    body = source[source.index("envMap = {") : source.index("};", source.index("envMap = {"))]
    entries = re.findall(r'^\s+"?([a-z][a-z0-9-]*)"?: (\[[^]]*\]|"[A-Z_0-9]+")', body, re.MULTILINE)
    theirs = {provider: tuple(re.findall(r'"([A-Z_0-9]+)"', value)) for provider, value in entries}
    constants = dict(re.findall(r'const (\w+) = "([A-Z_0-9]+)"', source))
    anthropic = re.search(r'provider === "anthropic"\) {\s+return \[([^]]*)\]', source)
    copilot = re.search(r'provider === "github-copilot"\) {\s+return \["([A-Z_]+)"\]', source)
    assert anthropic is not None
    assert copilot is not None
    theirs["anthropic"] = tuple(constants[name.strip()] for name in anthropic[1].split(","))
    theirs["github-copilot"] = (copilot[1],)

    assert len(theirs) > 30
    assert dict(KEY_VARIABLES) == theirs
