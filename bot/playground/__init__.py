"""A local Slack: the Web API, Socket Mode and a page to talk by hand, for demonstrations and for tests."""
