-- What SQLModel's create_all makes of the state that migrations begin with; {moment} is each database's own type.
CREATE TABLE alarm (
  source VARCHAR NOT NULL,
  since FLOAT NOT NULL,
  PRIMARY KEY (source)
);
CREATE TABLE inbox (
  id VARCHAR NOT NULL,
  event_id VARCHAR NOT NULL,
  team VARCHAR NOT NULL,
  channel VARCHAR NOT NULL,
  channel_type VARCHAR NOT NULL,
  "user" VARCHAR NOT NULL,
  text TEXT NOT NULL,
  ts VARCHAR NOT NULL,
  thread_root VARCHAR NOT NULL,
  files INTEGER NOT NULL,
  refusal VARCHAR NOT NULL,
  received_at FLOAT NOT NULL,
  state VARCHAR NOT NULL,
  owner VARCHAR NOT NULL,
  due FLOAT NOT NULL,
  claims INTEGER NOT NULL,
  tries INTEGER NOT NULL,
  posts INTEGER NOT NULL,
  turn VARCHAR NOT NULL,
  parts JSON NOT NULL,
  stopped BOOLEAN NOT NULL,
  error VARCHAR NOT NULL,
  PRIMARY KEY (id),
  UNIQUE (team, channel, ts),
  UNIQUE (event_id)
);
CREATE UNIQUE INDEX inbox_one_at_a_time ON inbox (team, channel, thread_root) WHERE state IN ('working', 'sending');
CREATE INDEX inbox_open ON inbox (state, due);
CREATE INDEX inbox_thread ON inbox (team, channel, thread_root);
CREATE TABLE run (
  id VARCHAR NOT NULL,
  kind VARCHAR NOT NULL,
  sources JSON NOT NULL,
  who VARCHAR NOT NULL,
  why VARCHAR NOT NULL,
  slot VARCHAR,
  started_at FLOAT NOT NULL,
  ended_at FLOAT,
  state VARCHAR NOT NULL,
  owner VARCHAR NOT NULL,
  due FLOAT NOT NULL,
  stage VARCHAR NOT NULL,
  done INTEGER NOT NULL,
  uri VARCHAR NOT NULL,
  cancelled_by VARCHAR NOT NULL,
  told BOOLEAN NOT NULL,
  report JSON NOT NULL,
  failure TEXT NOT NULL,
  PRIMARY KEY (id),
  UNIQUE (slot)
);
CREATE INDEX ix_run_started_at ON run (started_at);
CREATE UNIQUE INDEX run_one_at_a_time ON run (state) WHERE state = 'running';
CREATE TABLE turn (
  id VARCHAR NOT NULL,
  "after" VARCHAR NOT NULL,
  asked_at {moment} NOT NULL,
  "user" VARCHAR NOT NULL,
  mode VARCHAR NOT NULL,
  now VARCHAR NOT NULL,
  question TEXT,
  standalone TEXT,
  shape VARCHAR NOT NULL,
  text TEXT,
  detail JSON,
  readers JSON,
  tickets JSON,
  customers JSON,
  ms INTEGER NOT NULL,
  PRIMARY KEY (id)
);
