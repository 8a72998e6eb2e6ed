"""``twogate init``: the first files of evaluations in a server's own repository."""
