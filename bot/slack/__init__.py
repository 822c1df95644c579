"""Slack: questions in, answers out, over Socket Mode."""
