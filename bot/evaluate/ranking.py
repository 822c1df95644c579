"""Retrieval metrics of ranked sources, by ir-measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

METRICS = ("recall@5", "recall@10", "all@5", "all@10", "all@any", "mrr@10", "ndcg@10")
"""`all@k` is the share of questions with every source among the first k, `all@any` among all that was returned."""


def measured(
    rankings: Mapping[str, Sequence[str]], relevant: Mapping[str, Mapping[str, int]]
) -> dict[str, dict[str, float]]:
    """Return the metrics of each query that has something relevant; the best of a ranking stands first.

    A ranking may be shorter than the cut-off: what was not returned was not found. nDCG is Järvelin and Kekäläinen's
    (TOIS 2002) with the labels' scores as gains, as trec_eval computes it.
    """
    import ir_measures
    from ir_measures import RR, R, nDCG

    wanted = {R @ 5: "recall@5", R @ 10: "recall@10", RR @ 10: "mrr@10", nDCG @ 10: "ndcg@10"}
    run = {
        query: {source: 1 / place for place, source in enumerate(rankings[query], start=1)}
        for query in relevant
        if rankings[query]
    }
    found: dict[str, dict[str, float]] = {query: dict.fromkeys(METRICS, 0.0) for query in relevant}
    for one in ir_measures.iter_calc(list(wanted), {q: dict(of) for q, of in relevant.items()}, run):
        found[one.query_id][wanted[one.measure]] = one.value
    for query, of in found.items():
        of["all@5"] = float(of["recall@5"] == 1)
        of["all@10"] = float(of["recall@10"] == 1)
        of["all@any"] = float(set(relevant[query]) <= set(rankings[query]))
    return found
