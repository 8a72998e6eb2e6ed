"""``twogate init``: the first files of evaluations in a server's own repository.

Nothing is imported here: `evals.target` judges values by `evals.secrecy`, and `evals.init.config` reads targets.
"""
