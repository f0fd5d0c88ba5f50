"""REST: repositories, branches, contents and who may do what. https://docs.github.com/en/rest/repos"""

from tests.fakes.github.calls import Call, NotFound, route
from tests.fakes.github.faults import FAULTS, Fault, Reply, message

_REPOSITORY = "/repos/{owner}/{repo}"


@route("GET", "/")
def root(call: Call) -> Reply:
    return Reply(200, call.shapes.root())


@route("GET", "/user")
def user(call: Call) -> Reply:
    """https://docs.github.com/en/rest/users/users#get-the-authenticated-user"""
    if call.token.installation is not None:
        return FAULTS[Fault.FORBIDDEN]
    return Reply(200, call.shapes.whole_user(call.user))


@route("GET", "/users/{username}")
def one_user(call: Call) -> Reply:
    """https://docs.github.com/en/rest/users/users#get-a-user"""
    found = call.state.users.get(call.parts["username"])
    if found is None:
        raise NotFound
    return Reply(200, call.shapes.whole_user(found))


@route("GET", _REPOSITORY, "metadata")
def repository(call: Call) -> Reply:
    """https://docs.github.com/en/rest/repos/repos#get-a-repository"""
    return Reply(200, call.shapes.whole_repository(call.repository, call.token))


@route("GET", f"{_REPOSITORY}/collaborators/{{username}}/permission", "metadata")
def permission(call: Call) -> Reply:
    """https://docs.github.com/en/rest/collaborators/collaborators#get-repository-permissions-for-a-user"""
    found = call.state.users.get(call.parts["username"])
    if found is None:
        return message(404, f"{call.parts['username']} is not a user")
    level = call.repository.permission(found.login)
    told = {**call.shapes.user(found), "role_name": level, "permissions": call.shapes.allowed(level)}
    return Reply(200, {"permission": level, "role_name": level, "user": told})


@route("GET", f"{_REPOSITORY}/branches", "contents")
def branches(call: Call) -> Reply:
    """https://docs.github.com/en/rest/branches/branches#list-branches"""
    rows = sorted(call.repository.git.branches().items())
    if (asked := call.query.get("protected")) is not None:
        kept = call.repository.git.protected()
        rows = [row for row in rows if (row[0] in kept) == (asked == "true")]
    return call.page(rows, lambda row: call.shapes.branch(call.repository, *row))


@route("GET", f"{_REPOSITORY}/branches/{{+branch}}", "contents")
def branch(call: Call) -> Reply:
    """https://docs.github.com/en/rest/branches/branches#get-a-branch"""
    name = call.parts["branch"]
    sha = call.repository.git.branches().get(name)
    if sha is None:
        return message(404, "Branch not found")
    return Reply(200, call.shapes.whole_branch(call.repository, name, sha))


@route("GET", f"{_REPOSITORY}/rules/branches/{{+branch}}", "metadata")
def rules(call: Call) -> Reply:
    """https://docs.github.com/en/rest/repos/rules#get-rules-for-a-branch"""
    return call.page(call.shapes.rules(call.repository, call.parts["branch"]), lambda rule: rule)


@route("GET", f"{_REPOSITORY}/git/ref/{{+ref}}", "contents")
def reference(call: Call) -> Reply:
    """https://docs.github.com/en/rest/git/refs#get-a-reference"""
    name = call.parts["ref"].removeprefix("heads/")
    sha = call.repository.git.branches().get(name)
    if sha is None:
        raise NotFound
    return Reply(200, call.shapes.reference(call.repository, name, sha))


@route("GET", f"{_REPOSITORY}/git/matching-refs/{{+ref}}", "contents")
def references(call: Call) -> Reply:
    """https://docs.github.com/en/rest/git/refs#list-matching-references"""
    wanted = call.parts["ref"].removeprefix("heads/")
    rows = [row for row in sorted(call.repository.git.branches().items()) if row[0].startswith(wanted)]
    return call.page(rows, lambda row: call.shapes.reference(call.repository, *row))


@route("DELETE", f"{_REPOSITORY}/git/refs/{{+ref}}", "contents")
def delete_reference(call: Call) -> Reply:
    """https://docs.github.com/en/rest/git/refs#delete-a-reference"""
    name = call.parts["ref"].removeprefix("heads/")
    if name not in call.repository.git.branches():
        return message(422, "Reference does not exist")
    if name in call.repository.git.protected():
        return message(422, "Cannot delete protected branch")
    call.repository.git.delete(name)
    call.state.moved(call.repository, call.user)
    return Reply(204, None)


@route("GET", f"{_REPOSITORY}/commits/{{+ref}}", "contents")
def commit(call: Call) -> Reply:
    """https://docs.github.com/en/rest/commits/commits#get-a-commit"""
    try:
        name = f"{call.parts['ref']}^{{commit}}"
        sha = call.repository.git.run("rev-parse", "--verify", "--end-of-options", name).decode().strip()
    except ValueError:
        return message(422, f"No commit found for SHA: {call.parts['ref']}")
    return Reply(200, call.shapes.commit(call.repository, sha))


@route("GET", f"{_REPOSITORY}/contents/{{+path}}", "contents")
def contents(call: Call) -> Reply:
    """https://docs.github.com/en/rest/repos/contents#get-repository-content"""
    path, ref = call.parts["path"].strip("/"), call.query.get("ref", call.repository.default)
    git = call.repository.git
    folder, _, name = path.rpartition("/")
    try:
        row = next(row for row in git.tree(ref, folder) if row[2] == name)
        if row[0] == "blob":
            return Reply(200, call.shapes.file(call.repository, path, row, ref))
        inside = git.tree(ref, path)
    except (ValueError, StopIteration):
        raise NotFound from None
    return Reply(200, [call.shapes.content(call.repository, f"{path}/{row[2]}", row, ref) for row in inside])


@route("GET", "/rate_limit")
def rate_limit(call: Call) -> Reply:
    """https://docs.github.com/en/rest/rate-limit/rate-limit#get-rate-limit-status-for-the-authenticated-user"""
    now = call.state.rate.shown(call.state.now())
    resources = dict.fromkeys(("core", "graphql", "search"), now)
    return Reply(200, {"resources": resources, "rate": now})
