"""``twogate init``: the first files of evaluations in a server's own repository."""

from evals.init.writing import Answers, InitReport, initialise

__all__ = ["Answers", "InitReport", "initialise"]
