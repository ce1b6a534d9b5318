"""The condition that a client admits an account by its groups.

`queries/oidc/clients.py` changes groups, and `queries/erasure.py` erases members.
"""


def admits(client_id: str, messenger_id: str) -> str:
    """Return the condition that a client admits an account, as SQL: `Groups.admits` for a guarded statement.

    Args:
        client_id: the expression of the client's id. It must name its table, because a subquery uses it.
        messenger_id: the expression of the account's id, likewise. It is only evaluated if some groups are allowed.
    """
    allowed = f"SELECT 1 FROM oidc_group_members g WHERE g.client_id = {client_id} AND g.is_allowed = 1"
    # The row without an account is the group itself, so a group without members is allowed too, and admits nobody.
    return f"(NOT EXISTS ({allowed} AND g.messenger_id = '') OR EXISTS ({allowed} AND g.messenger_id = {messenger_id}))"
