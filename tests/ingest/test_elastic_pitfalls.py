"""What others fell into with Elasticsearch, each with the public report and the test that keeps us out of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PY = "elastic/elasticsearch-py/issues"
ES = "elastic/elasticsearch/issues"

CONTRACT = "ingest/test_index_contract.py::"
ELASTIC = "ingest/test_elastic.py::"
FAULTS = "ingest/test_elastic_faults.py::"
FUSION = "bot/test_retrieve.py::"
SYNC = "ingest/test_sync.py::"

PITFALLS: tuple[tuple[str, str, str], ...] = (
    (f"{PY}/2923", "a client of version 9 is refused by every 8.x server", f"{ELASTIC}test_a_server_that_cannot_be_used_stops_the_start_with_the_reason"),
    (f"{PY}/864", "refused rows of a bulk are not tried again", f"{ELASTIC}test_a_busy_server_gets_the_refused_rows_again_and_no_others"),
    (f"{PY}/1004", "only 429 is tried again, not 502 and 503", f"{ELASTIC}test_a_moment_s_trouble_is_not_seen_and_a_longer_one_is_told"),
    (f"{PY}/1085", "a repeated bulk doubles its rows", f"{ELASTIC}test_a_lost_answer_is_asked_for_again"),
    (f"{PY}/2485", "retries burn out without a pause, and multiply with the transport's", f"{ELASTIC}test_a_moment_s_trouble_is_not_seen_and_a_longer_one_is_told"),
    (f"{PY}/446", "huge requests time out", f"{ELASTIC}test_a_request_that_is_too_large_is_halved"),
    (f"{PY}/544", "what timed out was carried out all the same", f"{FAULTS}test_a_node_that_hangs_longer_than_a_request_may_take_gets_each_row_once"),
    (f"{PY}/2051", "a client is used on a second event loop", f"{CONTRACT}test_lists_and_matrix_never_disagree_while_somebody_writes"),
    (f"{PY}/2349", "a client is never closed", f"{ELASTIC}test_nothing_is_left_open_by_a_close_nor_by_a_start_that_fails"),
    (f"{PY}/1294", "rows are missing right after a bulk", f"{CONTRACT}test_a_document_is_found_by_a_word_of_it_right_after_flush"),
    ("opensearch-project/opensearch-py/issues/964", "the bulk helper's rules of retrying are misread", f"{ELASTIC}test_a_busy_server_gets_the_refused_rows_again_and_no_others"),
    (f"{ES}/137173", "vectors excluded in the mapping are lost by an update", f"{ELASTIC}test_the_mapping_is_strict_and_names_how_vectors_are_kept"),
    ("elastic/elasticsearch/pull/113100", "the server's rank fusion needs a paid licence", f"{ELASTIC}test_a_search_asks_once_with_the_filter_in_each_arm_and_for_no_vectors"),
    (f"{ES}/89561", "a filter beside the neighbours leaves fewer than wanted", f"{CONTRACT}test_filters_hold_in_every_arm_before_the_cut"),
    ("elastic/elasticsearch/pull/155849", "waiting for a refresh that never comes hangs", f"{ELASTIC}test_nothing_changes_for_readers_before_the_flush"),
    (f"{ES}/68003", "writes through an alias do not reach the index being built", f"{CONTRACT}test_a_rebuild_is_seen_by_nobody_before_it_is_published"),
    ("apache/flink-agents/pull/1001", "a filter after the search leaves nothing", f"{CONTRACT}test_filters_hold_in_every_arm_before_the_cut"),
    ("langchain-ai/langchain-elastic/issues/38", "scores of two kinds are added up", f"{FUSION}test_rank_restarts_at_one_in_each_list"),
    ("i-dot-ai/redbox/issues/203", "the default needs a paid licence", f"{ELASTIC}test_a_feature_or_a_right_that_is_missing_is_told_at_the_start"),
    ("langchain4j/langchain4j/pull/6219", "only ten places are ranked", f"{CONTRACT}test_lists_and_matrix_never_disagree_while_somebody_writes"),
    ("langchain-ai/langchainjs/pull/1810", "errors of single rows are dropped", f"{ELASTIC}test_a_poison_document_fails_alone_and_leaves_what_was_there"),
    ("langchain-ai/langchain/pull/11065", "a bulk's size cannot be changed when it times out", f"{ELASTIC}test_a_request_that_is_too_large_is_halved"),
    ("run-llama/llama_index/issues/17851", "a hidden event loop breaks in threads", f"{CONTRACT}test_lists_and_matrix_never_disagree_while_somebody_writes"),
    ("run-llama/llama_index/issues/12876", "threads are left behind", f"{ELASTIC}test_nothing_is_left_open_by_a_close_nor_by_a_start_that_fails"),
    ("run-llama/llama_index/issues/11417", "a guessed mapping makes a vector a list of numbers", f"{ELASTIC}test_a_removed_generation_does_not_come_back_by_a_write"),
    ("run-llama/llama_index/issues/8230", "a delete by a text field deletes nothing", f"{CONTRACT}test_a_deleted_document_is_in_no_arm"),
    ("run-llama/llama_index/issues/17786", "filters that mean any of them ask for all", f"{CONTRACT}test_filters_hold_in_every_arm_before_the_cut"),
    ("run-llama/llama_index/pull/17890", "deleting is broken and the test does not see it", f"{CONTRACT}test_a_deleted_document_is_in_no_arm"),
    ("deepset-ai/haystack-core-integrations/issues/58", "every error of a bulk is called a duplicate", f"{ELASTIC}test_a_poison_document_fails_alone_and_leaves_what_was_there"),
    ("deepset-ai/haystack/issues/320", "a refresh for each document makes a run ten times slower", f"{ELASTIC}test_nothing_changes_for_readers_before_the_flush"),
    ("infiniflow/ragflow/issues/9619", "each source's columns become fields until there are too many", f"{ELASTIC}test_the_mapping_is_strict_and_names_how_vectors_are_kept"),
    ("infiniflow/ragflow/issues/4478", "vectors of a size that the mapping does not know break every query", f"{CONTRACT}test_wrong_vectors_are_refused_and_lose_nothing"),
    ("infiniflow/ragflow/issues/1003", "vectors and mapping have two sizes", f"{CONTRACT}test_an_arm_that_fails_is_named_and_the_others_answer"),
    ("infiniflow/ragflow/issues/5956", "an old server does not know the syntax", f"{ELASTIC}test_a_server_that_cannot_be_used_stops_the_start_with_the_reason"),
    ("infiniflow/ragflow/issues/1657", "ids with hyphens are not found", f"{CONTRACT}test_an_exact_title_and_an_error_code_are_in_the_top_three"),
    ("infiniflow/ragflow/pull/17140", "a weight of nought takes an arm out", f"{FUSION}test_good_in_both_lists_beats_first_in_one"),
    ("onyx-dot-app/onyx/issues/11049", "a change of the embedding model fails half way", f"{CONTRACT}test_a_rebuild_mends_another_identity_and_a_running_process_answers_from_what_it_has"),
    ("onyx-dot-app/onyx/pull/9005", "what changes during a rebuild is lost by the swap", f"{SYNC}test_what_changes_while_a_rebuild_embeds_is_in_the_new_generation"),
    ("onyx-dot-app/onyx/pull/8238", "a document is away between delete and write", f"{ELASTIC}test_a_document_whose_writing_was_cut_off_has_no_revision_and_is_mended_by_the_next_run"),
    ("open-metadata/OpenMetadata/issues/30880", "another model's vectors fail in silence and old answers are served", f"{CONTRACT}test_another_identity_is_refused_with_both_and_the_command"),
    ("giancarloerra/SocratiCode/pull/156", "a document that was written in part counts as done", f"{ELASTIC}test_a_document_whose_writing_was_cut_off_has_no_revision_and_is_mended_by_the_next_run"),
    ("open-metadata/OpenMetadata/pull/29906", "a title stands on one chunk of its document only", f"{CONTRACT}test_a_heading_is_found_like_a_title"),
)  # fmt: skip
"""Report, what happens there, and our test."""

ELSEWHERE: dict[str, str] = {
    "elastic/elasticsearch-py/pull/2928": "which versions go together stands in the README",
    f"{PY}/2651": "no ranking is left to the server",
    f"{ES}/99011": "a search is one window; nobody turns its pages",
    f"{ES}/111507": "synonyms are ours and in no analyzer",
    f"{ES}/102950": "a row is one chunk, nothing is nested",
    "deepset-ai/haystack-core-integrations/pull/3196": "there is one way to write, not two",
    "deepset-ai/haystack-core-integrations/pull/3374": "the pipeline calls every index on a thread",
    "onyx-dot-app/onyx/issues/6493": "every source can be read again",
    "opensearch-project/neural-search/issues/1411": "no hits are collapsed by the server",
}
"""Reports that cannot touch this code, and why."""


@pytest.mark.parametrize(("report", "test"), [(report, test) for report, _, test in PITFALLS])
def test_a_known_pitfall_has_a_test(report: str, test: str) -> None:
    file, _, name = test.partition("::")
    assert re.search(rf"^(?:async )?def {name}\(", (TESTS / file).read_text("utf-8"), re.MULTILINE), report
    assert report not in ELSEWHERE
