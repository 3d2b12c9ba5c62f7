-- The catalog: what is tracked, promised, sealed, released and spent. Everything here is private to dbext_owner;
-- views in schema dbext show the public part. Tables are referenced by name, so that dump and restore carry them.

CREATE TABLE dbext_private.runtime (
    python_path    text NOT NULL,
    second_session text NOT NULL
);
COMMENT ON TABLE dbext_private.runtime IS
    'Where this server finds the Python packages and how a session reaches its own database. Only a superuser may change it; never dumped.';
INSERT INTO dbext_private.runtime (python_path, second_session) VALUES (@python_path@, @second_session@);

-- PostgreSQL has none for this type; the support functions are its own.
CREATE OPERATOR CLASS dbext_private.xid8_minmax_ops FOR TYPE pg_catalog.xid8 USING brin AS
    OPERATOR 1 pg_catalog.< (pg_catalog.xid8, pg_catalog.xid8),
    OPERATOR 2 pg_catalog.<= (pg_catalog.xid8, pg_catalog.xid8),
    OPERATOR 3 pg_catalog.= (pg_catalog.xid8, pg_catalog.xid8),
    OPERATOR 4 pg_catalog.>= (pg_catalog.xid8, pg_catalog.xid8),
    OPERATOR 5 pg_catalog.> (pg_catalog.xid8, pg_catalog.xid8),
    FUNCTION 1 pg_catalog.brin_minmax_opcinfo(internal),
    FUNCTION 2 pg_catalog.brin_minmax_add_value(internal, internal, internal, internal),
    FUNCTION 3 pg_catalog.brin_minmax_consistent(internal, internal, internal),
    FUNCTION 4 pg_catalog.brin_minmax_union(internal, internal, internal);
COMMENT ON OPERATOR CLASS dbext_private.xid8_minmax_ops USING brin IS 'Block ranges by the transactions that wrote to them: how a seal finds new mutations.';

CREATE TABLE dbext_private.cluster_identity (
    only_row          boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    system_identifier text NOT NULL,
    database_oid      oid  NOT NULL,
    timeline          text NOT NULL,
    since             timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp()
);
COMMENT ON TABLE dbext_private.cluster_identity IS
    'The cluster, database and timeline in which the stored snapshots mean something; a seal elsewhere is refused.';

CREATE TABLE dbext_private.budget (
    budget_id  integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       text NOT NULL CONSTRAINT budget_name_key UNIQUE,
    epsilon    numeric NOT NULL CONSTRAINT budget_epsilon_positive CHECK (epsilon OPERATOR(pg_catalog.>) 0.0),
    delta      numeric NOT NULL CONSTRAINT budget_delta_range CHECK (delta OPERATOR(pg_catalog.>=) 0.0 AND delta OPERATOR(pg_catalog.<) 1.0),
    key_delta  numeric NOT NULL DEFAULT 0
        CONSTRAINT budget_key_delta_range CHECK (key_delta OPERATOR(pg_catalog.>=) 0.0 AND key_delta OPERATOR(pg_catalog.<=) delta),
    revision   bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp()
);
COMMENT ON TABLE dbext_private.budget IS
    'Named budgets. Whoever charges one updates its row (revision) first and reads the ledger in a later statement.';

CREATE TABLE dbext_private.tracked_table (
    table_id              integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    schema_name           text NOT NULL,
    table_name            text NOT NULL,
    relation              oid NOT NULL,
    budget_id             integer REFERENCES dbext_private.budget,
    tick_kind             text NOT NULL CONSTRAINT tick_kind_known CHECK (tick_kind IN ('fixed', 'day', 'month')),
    tick_size             bigint NOT NULL CONSTRAINT tick_size_positive CHECK (tick_size > 0),
    time_zone             text NOT NULL,
    first_tick            bigint NOT NULL,
    tracked               boolean NOT NULL DEFAULT true,
    sealed_unconstrained  boolean NOT NULL DEFAULT false,
    tracked_at            timestamptz NOT NULL,
    capture               text NOT NULL DEFAULT 'statement' CONSTRAINT capture_known CHECK (capture IN ('statement', 'row')),
    row_triggers          boolean NOT NULL DEFAULT false,
    rows_per_unit         integer CONSTRAINT rows_per_unit_positive CHECK (rows_per_unit >= 1),
    forgotten_through     bigint,
    segment               integer,
    schema_facts          text
);
CREATE INDEX tracked_table_name ON dbext_private.tracked_table (schema_name, table_name);
COMMENT ON TABLE dbext_private.tracked_table IS 'Tables whose mutations are captured, with their tick.';
COMMENT ON COLUMN dbext_private.tracked_table.relation IS
    'The table, by its OID; 0: dropped. Only in a restored database names decide, until dp_confirm_upgrade stores its OIDs';
COMMENT ON COLUMN dbext_private.tracked_table.tick_size IS 'Days, months or (kind fixed) microseconds in one tick';
COMMENT ON COLUMN dbext_private.tracked_table.first_tick IS 'Tick that holds the baseline';
COMMENT ON COLUMN dbext_private.tracked_table.row_triggers IS 'Captured row by row: as capture says, or because logical replication fires no other triggers';
COMMENT ON COLUMN dbext_private.tracked_table.capture IS 'What its owner chose, or else what suits the table: a trigger per statement, or per row where it is partitioned';
COMMENT ON COLUMN dbext_private.tracked_table.rows_per_unit IS 'How many rows of a unit count, the first by primary key; NULL: the unit is one row';
COMMENT ON COLUMN dbext_private.tracked_table.forgotten_through IS 'Last tick whose changes dp_retain has folded into one; NULL: none';
COMMENT ON COLUMN dbext_private.tracked_table.schema_facts IS 'Hash of what the catalogs said when the schema was last followed';
COMMENT ON COLUMN dbext_private.tracked_table.sealed_unconstrained IS
    'Entries were admitted before any constraint existed: the accountant counts an unconstrained type';

CREATE TABLE dbext_private.log_segment (
    table_id  integer NOT NULL REFERENCES dbext_private.tracked_table ON DELETE CASCADE,
    segment   integer NOT NULL,
    begun_at  timestamptz NOT NULL,
    closed_in xid8,
    closed_at timestamptz,
    writers   text[],
    PRIMARY KEY (table_id, segment)
);

CREATE TABLE dbext_private.tracked_partition (
    table_id    integer NOT NULL REFERENCES dbext_private.tracked_table ON DELETE CASCADE,
    relation    oid NOT NULL,
    schema_name text NOT NULL,
    table_name  text NOT NULL,
    detached    boolean NOT NULL DEFAULT false,
    PRIMARY KEY (table_id, relation)
);
COMMENT ON TABLE dbext_private.tracked_partition IS 'Partitions of all levels under tracked tables, as last seen: what left the tree is known by them.';
COMMENT ON COLUMN dbext_private.tracked_partition.detached IS 'Left the tree unseen, perhaps with capture triggers, which record nothing there';

CREATE TABLE dbext_private.tracked_column (
    table_id         integer NOT NULL REFERENCES dbext_private.tracked_table ON DELETE CASCADE,
    position         integer NOT NULL,
    column_name      text NOT NULL,
    attribute_number smallint NOT NULL,
    type_name        text NOT NULL,
    is_unit          boolean NOT NULL,
    is_key           boolean NOT NULL,
    gone             boolean NOT NULL DEFAULT false,
    labels           jsonb,
    PRIMARY KEY (table_id, position)
);
COMMENT ON TABLE dbext_private.tracked_column IS
    'Tracked columns; position numbers the columns key_<position>, old_<position>, new_<position>, image_<position> of the run-time tables.';
COMMENT ON COLUMN dbext_private.tracked_column.is_unit IS 'Whether it identifies entries';
COMMENT ON COLUMN dbext_private.tracked_column.is_key IS 'Whether it identifies rows in the changelog: columns of the unit and, where that has several rows, of the primary key';
COMMENT ON COLUMN dbext_private.tracked_column.type_name IS 'Type without modifier, domains resolved to what they stand on';
COMMENT ON COLUMN dbext_private.tracked_column.labels IS 'Labels of an enum by OID, as last seen; NULL for other types';
COMMENT ON COLUMN dbext_private.tracked_column.gone IS 'Dropped or given another type since: captured as NULL from then on';

CREATE TABLE dbext_private.column_bounds (
    table_id integer NOT NULL REFERENCES dbext_private.tracked_table ON DELETE CASCADE,
    position integer NOT NULL,
    low      numeric NOT NULL,
    high     numeric NOT NULL,
    grid     numeric NOT NULL CONSTRAINT column_bounds_grid_positive CHECK (grid OPERATOR(pg_catalog.>) 0.0),
    PRIMARY KEY (table_id, position),
    CONSTRAINT column_bounds_in_order CHECK (low < high)
);
COMMENT ON TABLE dbext_private.column_bounds IS
    'What the DBA said that the values of a column lie between, and the grid that sums round them to. Releases keep a copy of their own.';

CREATE TABLE dbext_private.entry_type (
    table_id              integer NOT NULL REFERENCES dbext_private.tracked_table ON DELETE CASCADE,
    type_no               integer NOT NULL CONSTRAINT entry_type_number_positive CHECK (type_no > 0),
    name                  text NOT NULL,
    applies_to            jsonb,
    applies_to_text       text,
    max_mutations         integer CONSTRAINT entry_type_mutations_positive CHECK (max_mutations >= 1),
    active_within         bigint CONSTRAINT entry_type_within_not_negative CHECK (active_within >= 0),
    at_limit              text NOT NULL CONSTRAINT entry_type_at_limit_known CHECK (at_limit IN ('stay', 'leave')),
    loosest_max_mutations integer,
    loosest_active_within bigint,
    PRIMARY KEY (table_id, type_no),
    CONSTRAINT entry_type_name_key UNIQUE (table_id, name)
);
COMMENT ON TABLE dbext_private.entry_type IS
    'Mutation constraints by entry type, in order of declaration; applies_to NULL is the default type. The loosest_* columns (NULL = no limit) are what the accountant counts with.';

CREATE TABLE dbext_private.seal_head (
    table_id integer PRIMARY KEY REFERENCES dbext_private.tracked_table ON DELETE CASCADE,
    tick     bigint NOT NULL,
    boundary timestamptz NOT NULL,
    snapshot pg_snapshot NOT NULL,
    seal_no  bigint NOT NULL DEFAULT 0
);
COMMENT ON TABLE dbext_private.seal_head IS 'Last closed tick of each table, its boundary and the snapshot that closed it. Its row lock serialises seals.';

CREATE TABLE dbext_private.seal (
    table_id   integer NOT NULL,
    seal_no    bigint NOT NULL,
    first_tick bigint NOT NULL,
    last_tick  bigint NOT NULL,
    boundary   timestamptz NOT NULL,
    snapshot   pg_snapshot NOT NULL,
    sealed_at  timestamptz NOT NULL,
    taken      bigint NOT NULL,
    late       bigint NOT NULL,
    mismatched bigint NOT NULL,
    files      bigint,
    written    bigint,
    PRIMARY KEY (table_id, seal_no)
);
COMMENT ON TABLE dbext_private.seal IS 'Every seal pass; the row counts are for dbext_admin alone.';
COMMENT ON COLUMN dbext_private.seal.files IS 'Hash of the file numbers of the table and its partitions: a rewritten table has others';
COMMENT ON COLUMN dbext_private.seal.written IS 'Rows that PostgreSQL''s statistics have seen written to the table, rolled back ones included';

CREATE TABLE dbext_private.schema_event (
    event_no     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    table_id     integer NOT NULL,
    from_tick    bigint NOT NULL,
    through_tick bigint,
    kind         text NOT NULL,
    description  text NOT NULL,
    recorded_at  timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp()
);
CREATE UNIQUE INDEX schema_event_open_once ON dbext_private.schema_event (table_id, kind, description) WHERE through_tick IS NULL;
COMMENT ON TABLE dbext_private.schema_event IS
    'Changes of a tracked table that break capture (trigger disabled, column or table dropped). They depend on the schema alone, so they are public.';
COMMENT ON COLUMN dbext_private.schema_event.through_tick IS 'Last tick concerned; NULL until dp_track takes the table up again';

CREATE TABLE dbext_private.public_column (
    schema_name text NOT NULL,
    table_name  text NOT NULL,
    column_name text NOT NULL,
    PRIMARY KEY (schema_name, table_name, column_name)
);
COMMENT ON TABLE dbext_private.public_column IS 'Columns that the DBA marked public: group keys may be read from them.';

CREATE TABLE dbext_private.release (
    release_id      integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name            text NOT NULL,
    table_id        integer NOT NULL REFERENCES dbext_private.tracked_table,
    declaration     text NOT NULL,
    plan            jsonb NOT NULL,
    labels          jsonb,
    state           text NOT NULL CONSTRAINT release_state_known CHECK (state IN ('active', 'finished', 'dropped')),
    next_period     bigint NOT NULL DEFAULT 1,
    next_answer     bigint NOT NULL DEFAULT 1,
    last_end        bigint,
    next_end        bigint,
    horizon_end     bigint,
    summed_through  bigint NOT NULL,
    last_error      text,
    target          text,
    delivered       bigint NOT NULL DEFAULT 0,
    created_by      text NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp()
);
CREATE UNIQUE INDEX release_name_key ON dbext_private.release (name) WHERE state <> 'dropped';
COMMENT ON TABLE dbext_private.release IS 'Declared releases. next_period is the first one whose nodes are not drawn; exact sums exist through tick summed_through.';
COMMENT ON COLUMN dbext_private.release.labels IS 'Labels of the table''s enum columns at declaration, by OID: were one renamed, the predicate would mean something else';
COMMENT ON COLUMN dbext_private.release.next_answer IS 'First period not yet in the release table: answers follow once their nodes are committed';
COMMENT ON COLUMN dbext_private.release.last_end IS 'Tick that closed the last published period; NULL before the first';
COMMENT ON COLUMN dbext_private.release.next_end IS 'Tick that must be sealed before the next period is published; NULL when none is to come';
COMMENT ON COLUMN dbext_private.release.target IS 'Name of the release target whose readers see it; NULL: readers of this database do';
COMMENT ON COLUMN dbext_private.release.delivered IS 'Last period that a worker has seen committed at the release target';
COMMENT ON COLUMN dbext_private.release.horizon_end IS 'Tick that closes the horizon, or the epoch of the next period; NULL when there is none';
COMMENT ON COLUMN dbext_private.release.last_error IS 'SQLSTATE of the last failed publication; NULL after a good one';

CREATE TABLE dbext_private.release_key (
    release_id integer NOT NULL REFERENCES dbext_private.release,
    cell       integer NOT NULL,
    key_values text[] NOT NULL,
    shown_from bigint DEFAULT 1,
    PRIMARY KEY (release_id, cell)
);
COMMENT ON TABLE dbext_private.release_key IS
    'Group keys; cell numbers start at 1. Public keys are frozen with the declaration; keys taken from the data are added as they appear.';
COMMENT ON COLUMN dbext_private.release_key.shown_from IS 'First period whose row is published; NULL while a key taken from the data is hidden';

CREATE TABLE dbext_private.tick_sum (
    release_id integer NOT NULL REFERENCES dbext_private.release,
    stream_no  integer NOT NULL DEFAULT 1,
    tick       bigint NOT NULL,
    sums       bigint[] NOT NULL,
    PRIMARY KEY (release_id, stream_no, tick)
);
COMMENT ON TABLE dbext_private.tick_sum IS 'Exact effect of one tick on every cell, in order of cell. A tick without a row has no effect.';
COMMENT ON COLUMN dbext_private.tick_sum.stream_no IS 'Which statistic of the release: a count, a sum, a sum of squares';

CREATE TABLE dbext_private.node (
    release_id integer NOT NULL REFERENCES dbext_private.release,
    stream_no  integer NOT NULL DEFAULT 1,
    node_no    bigint NOT NULL,
    noisy      numeric[] NOT NULL,
    drawn_in   xid8 NOT NULL DEFAULT pg_catalog.pg_current_xact_id(),
    CONSTRAINT node_drawn_once PRIMARY KEY (release_id, stream_no, node_no)
);
COMMENT ON TABLE dbext_private.node IS 'Noisy nodes or encoder rows, one whole number per cell. The primary key makes a second draw impossible; nothing is answered from a node whose transaction is not committed.';

CREATE TABLE dbext_private.noise_state (
    release_id integer NOT NULL REFERENCES dbext_private.release,
    stream_no  integer NOT NULL,
    drawn      bigint NOT NULL,
    buffers    numeric[] NOT NULL,
    answered   bigint NOT NULL,
    totals     numeric[] NOT NULL,
    PRIMARY KEY (release_id, stream_no)
);
COMMENT ON TABLE dbext_private.noise_state IS
    'Of buffered totals: the buffers after the last period drawn, buffer by buffer, and the exact totals of the last period answered.';

CREATE TABLE dbext_private.release_member (
    release_id integer NOT NULL REFERENCES dbext_private.release,
    place      integer NOT NULL,
    key_values text[] NOT NULL,
    pseudonym  uuid,
    PRIMARY KEY (release_id, place)
);
COMMENT ON TABLE dbext_private.release_member IS
    'The fixed public roster of a release of the local model: every member reports about every range, whether it has a row or not.';
COMMENT ON COLUMN dbext_private.release_member.pseudonym IS 'What published reports call the member, drawn at random; NULL when they are not published';

CREATE TABLE dbext_private.report (
    release_id integer NOT NULL REFERENCES dbext_private.release,
    node_no    bigint NOT NULL,
    reports    smallint[] NOT NULL,
    CONSTRAINT report_drawn_once PRIMARY KEY (release_id, node_no)
);
COMMENT ON TABLE dbext_private.report IS
    'Randomised reports about a node, in order of place; the truth is never stored. The primary key makes a second draw impossible.';

CREATE TABLE dbext_private.ledger (
    ledger_no   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    budget_id   integer NOT NULL REFERENCES dbext_private.budget,
    table_id    integer REFERENCES dbext_private.tracked_table,
    release_id  integer,
    question_id bigint,
    kind        text NOT NULL CONSTRAINT ledger_kind_known CHECK (kind IN ('reserve', 'publish', 'return', 'question', 'budget', 'lost')),
    charges     jsonb NOT NULL,
    key_checks  jsonb NOT NULL DEFAULT '[]',
    epsilon     numeric NOT NULL,
    recorded_by text NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    recorded_in xid8 NOT NULL DEFAULT pg_catalog.pg_current_xact_id()
);
CREATE INDEX ledger_budget ON dbext_private.ledger (budget_id);
COMMENT ON TABLE dbext_private.ledger IS
    'Append-only record of every charge. reserve: lifetime of a release; publish: all of it that has left so far; return: what remains charged after a drop; question: one answer; budget: a change of the budget itself; lost: all that had left of a table when a superuser accepted that the ledger had lost it.';
COMMENT ON COLUMN dbext_private.ledger.key_checks IS 'When hidden group keys are looked at: what may show an entry''s own key, which delta pays for';

CREATE TABLE dbext_private.open_reservation (
    release_id  integer PRIMARY KEY,
    declared_in xid8 NOT NULL
);
COMMENT ON TABLE dbext_private.open_reservation IS
    'Reservations committed for a declaration whose own transaction had not ended: they count, until that transaction is seen to have come to nothing. Never dumped: a dump holds no open transaction.';

CREATE TABLE dbext_private.table_grant (
    table_id  integer NOT NULL REFERENCES dbext_private.tracked_table ON DELETE CASCADE,
    role_name text NOT NULL,
    positions integer[],
    PRIMARY KEY (table_id, role_name)
);
COMMENT ON TABLE dbext_private.table_grant IS 'Which roles may ask about a table without SELECT on it. positions: columns they may name, by position; NULL: all.';

CREATE TABLE dbext_private.allowance (
    table_id  integer NOT NULL REFERENCES dbext_private.tracked_table ON DELETE CASCADE,
    role_name text NOT NULL,
    epsilon   numeric NOT NULL CONSTRAINT allowance_not_negative CHECK (epsilon OPERATOR(pg_catalog.>=) 0.0),
    key_delta numeric NOT NULL DEFAULT 0 CONSTRAINT allowed_key_delta CHECK (key_delta OPERATOR(pg_catalog.>=) 0.0),
    PRIMARY KEY (table_id, role_name)
);
COMMENT ON TABLE dbext_private.allowance IS
    'What an entry of a table may lose to all that one role asks and declares, group keys included. The row of dbext_analyst is for each analyst who has none of his own.';

CREATE TABLE dbext_private.role_identity (
    first_name text NOT NULL,
    role_name  text NOT NULL,
    role_oid   oid,
    PRIMARY KEY (first_name, role_name)
);
COMMENT ON TABLE dbext_private.role_identity IS
    'Names under which the same role has spent: allowances outlive ALTER ROLE ... RENAME. OIDs are those of this cluster; NULL: of another one.';

CREATE TABLE dbext_private.loss_bound (
    table_id   integer PRIMARY KEY REFERENCES dbext_private.tracked_table ON DELETE CASCADE,
    terms      text NOT NULL,
    pure_picos numeric NOT NULL,
    rho_picos  numeric NOT NULL
);
COMMENT ON TABLE dbext_private.loss_bound IS
    'An upper bound on what a table is charged for under the given terms (constraints, kind of budget). Changed under the budget''s lock, with every charge; never dumped: it is worked out anew.';

CREATE TABLE dbext_private.question (
    question_id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    table_id        integer NOT NULL REFERENCES dbext_private.tracked_table,
    first_tick      bigint,
    last_tick       bigint NOT NULL,
    measure         text NOT NULL,
    predicate       text NOT NULL,
    term            text NOT NULL DEFAULT '',
    epsilon         numeric NOT NULL,
    answer          bigint NOT NULL,
    noise           jsonb NOT NULL,
    pure            boolean NOT NULL DEFAULT false,
    asked_by        text NOT NULL,
    asked_at        timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp()
);
CREATE INDEX question_canonical ON dbext_private.question (table_id, last_tick, measure);
COMMENT ON COLUMN dbext_private.question.pure IS 'Whether its price adds in epsilon whatever the budget is';
COMMENT ON TABLE dbext_private.question IS
    'Answers given once and remembered. first_tick NULL reaches back to the beginning; predicate is the canonical text ("" for none), term what is summed and within which bounds ("" for a count).';

CREATE FUNCTION dbext_private.refuse_change() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE EXCEPTION 'the ledger is append-only' USING ERRCODE = 'DP005';
END $$;
COMMENT ON FUNCTION dbext_private.refuse_change() IS 'Keeps the ledger append-only, whatever privileges say.';
CREATE TRIGGER ledger_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON dbext_private.ledger
    FOR EACH STATEMENT EXECUTE FUNCTION dbext_private.refuse_change();

-- Dump and restore carry the catalog (never the runtime row, which belongs to one server).
DO $$
DECLARE
    relation text;
BEGIN
    FOREACH relation IN ARRAY ARRAY['cluster_identity', 'budget', 'tracked_table', 'log_segment', 'tracked_partition', 'tracked_column', 'column_bounds', 'entry_type', 'seal_head', 'seal',
        'schema_event', 'public_column', 'release', 'release_key', 'release_member', 'tick_sum', 'node', 'noise_state', 'report', 'ledger', 'question', 'table_grant', 'allowance', 'role_identity'] LOOP
        PERFORM pg_catalog.pg_extension_config_dump(('dbext_private.' || relation)::pg_catalog.regclass, '');
    END LOOP;
    FOREACH relation IN ARRAY ARRAY['budget_budget_id_seq', 'tracked_table_table_id_seq', 'schema_event_event_no_seq',
        'release_release_id_seq', 'ledger_ledger_no_seq', 'question_question_id_seq'] LOOP
        PERFORM pg_catalog.pg_extension_config_dump(('dbext_private.' || relation)::pg_catalog.regclass, '');
    END LOOP;
END $$;
