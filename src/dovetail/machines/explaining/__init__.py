"""Explanations of guests: why one has a unit or waits, and what would help. `guest` is asked.

    cases      a guest in a snapshot, as it is or as it would be
    judging    the rules by which it is sold a unit, one after the other, and what is left of nodes
    nearest    what the nodes lack that come nearest
    remedies/  changes that might help: of the pod, of the Machine, or by waiting
    relaxing   the smallest of them that do
    guest      all of that as one explanation

Everything is judged by what sells (`selling`), with those served first who are ahead in the line:
an explanation cannot say anything else than the next plan does.
"""
