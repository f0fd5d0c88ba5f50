"""What a GraphQL document asks for, as gh writes them."""

import pytest

from tests.fakes.github.selection import Unfit, read

_GH = """
fragment pr on PullRequest { number,title,author{login} }   # a comment, with } in it
query PullRequestList(
    $owner: String!, $states: [PullRequestState!] = OPEN, $limit: Int!
) {
    repository(owner: $owner, name: "we\\"b", labels: ["a", {b: [1]}]) {
        pulls: pullRequests(first: $limit, orderBy: {field: CREATED_AT, direction: DESC}) {
            totalCount
            nodes { ...pr __typename ... on Issue { state } ... on PullRequest { head: headRefName } }
            pageInfo { hasNextPage }
        }
    }
}
"""
_DATA = {
    "repository": {
        "id": "R_1",
        "pullRequests": {
            "totalCount": 1,
            "pageInfo": {"hasNextPage": False, "endCursor": None},
            "nodes": [
                {
                    "__typename": "PullRequest",
                    "number": 3,
                    "title": "Mend",
                    "author": {"login": "alice", "id": "U_1"},
                    "headRefName": "mend",
                    "state": "OPEN",
                }
            ],
        },
    }
}


def test_an_answer_has_what_was_asked_for_and_nothing_else() -> None:
    document = read(_GH)
    assert (document.name, document.first().arguments["owner"]) == ("PullRequestList", "$owner")
    node = {"number": 3, "title": "Mend", "author": {"login": "alice"}, "__typename": "PullRequest", "head": "mend"}
    pulls = {"totalCount": 1, "nodes": [node], "pageInfo": {"hasNextPage": False}}
    assert document.cut(_DATA) == {"repository": {"pulls": pulls}}


def test_what_is_not_there_is_named() -> None:
    with pytest.raises(Unfit, match=r"the edge has no Q\.viewer\.email"):
        read("query Q{viewer{login email}}").cut({"viewer": {"login": "alice"}})


def test_nothing_below_nothing() -> None:
    assert read("{issue{author{login}}}").cut({"issue": {"author": None}}) == {"issue": {"author": None}}


@pytest.mark.parametrize("text", ["query Q", "query Q(", "query Q{a", "mutation M}", "query Q{a ~}"])
def test_a_document_that_is_none(text: str) -> None:
    with pytest.raises(Unfit):
        read(text)
