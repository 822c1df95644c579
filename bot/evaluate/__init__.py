"""The evaluation: labelled questions, public sets and rule sentences in; outcomes, rates and intervals out."""
