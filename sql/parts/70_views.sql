-- What is public about tracked tables, budgets and releases. Nothing here depends on the data of a tracked table.

CREATE FUNCTION dbext_private.public_moment(table_id integer, tick bigint) RETURNS timestamptz
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT dbext_private.table_tick_end(public_moment.table_id, public_moment.tick)
$$;
COMMENT ON FUNCTION dbext_private.public_moment(integer, bigint) IS 'When a tick of a tracked table ends, for readers of views.';

CREATE FUNCTION dbext_private.public_subject(table_id integer) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT dbext_private.protected_subject(public_subject.table_id) || CASE WHEN t.tracked THEN '' ELSE '; not tracked now, nothing is captured' END
    FROM dbext_private.tracked_table AS t WHERE t.table_id = public_subject.table_id
$$;
COMMENT ON FUNCTION dbext_private.public_subject(integer) IS 'What is protected in a tracked table, for readers of views.';

CREATE FUNCTION dbext_private.public_span(kind text, size bigint) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('%s %s%s', u.number, u.word, CASE u.number WHEN 1 THEN '' ELSE 's' END)
    FROM (SELECT size AS number, kind AS word WHERE kind <> 'fixed'
        UNION ALL SELECT size / w.microseconds, w.word FROM (VALUES (3600000000, 'hour'), (60000000, 'minute'), (1000000, 'second')) AS w (microseconds, word)
        WHERE kind = 'fixed' AND size % w.microseconds = 0) AS u
    ORDER BY u.number LIMIT 1
$$;
COMMENT ON FUNCTION dbext_private.public_span(text, bigint) IS 'How long a tick lasts, in words.';

CREATE TYPE dbext_private.budget_figures AS (budget_id integer, spent numeric, reserved numeric, "left" numeric);
COMMENT ON TYPE dbext_private.budget_figures IS 'Figures of one budget.';

CREATE FUNCTION dbext_private.budget_figures() RETURNS SETOF dbext_private.budget_figures
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT * FROM jsonb_populate_recordset(NULL::dbext_private.budget_figures, dbext_private.call('budget_status', '{}'))
    WHERE dbext_private.is_admitted(dbext_private.caller());
END $$;
COMMENT ON FUNCTION dbext_private.budget_figures() IS 'What the accountant says about every budget now.';

CREATE TYPE dbext_private.budget_use AS (budget_id integer, table_id integer, kind text, name text, epsilon numeric, share numeric, adds_in text);
COMMENT ON TYPE dbext_private.budget_use IS 'What one release or question takes of a budget.';

CREATE FUNCTION dbext_private.budget_uses() RETURNS SETOF dbext_private.budget_use
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT * FROM jsonb_populate_recordset(NULL::dbext_private.budget_use, dbext_private.call('budget_use', '{}'))
    WHERE dbext_private.is_admitted(dbext_private.caller());
END $$;
COMMENT ON FUNCTION dbext_private.budget_uses() IS 'What the accountant says about every release and question.';

CREATE VIEW dbext.tracked_table AS
SELECT pg_catalog.format('%I.%I', t.schema_name, t.table_name) AS table_name,
       t.tracked,
       dbext_private.public_subject(t.table_id) AS protects,
       dbext_private.public_span(t.tick_kind, t.tick_size) AS tick,
       t.time_zone,
       dbext_private.public_moment(t.table_id, coalesce(t.forgotten_through, t.first_tick OPERATOR(pg_catalog.-) 1)) AS history_begins,
       dbext_private.public_moment(t.table_id, h.tick) AS sealed_up_to,
       b.name AS budget,
       CASE WHEN t.row_triggers THEN 'row' ELSE 'statement' END AS capture
FROM dbext_private.tracked_table AS t
JOIN dbext_private.seal_head AS h ON h.table_id OPERATOR(pg_catalog.=) t.table_id
LEFT JOIN dbext_private.budget AS b ON b.budget_id OPERATOR(pg_catalog.=) t.budget_id;
COMMENT ON VIEW dbext.tracked_table IS 'Tables whose mutations are captured, what is protected in them, and up to when they are sealed.';

CREATE VIEW dbext.entry_type AS
SELECT pg_catalog.format('%I.%I', t.schema_name, t.table_name) AS table_name, e.type_no, e.name,
       coalesce(e.applies_to_text, 'every other entry') AS applies_to, e.max_mutations, e.active_within AS active_within_ticks, e.at_limit
FROM dbext_private.entry_type AS e
JOIN dbext_private.tracked_table AS t ON t.table_id OPERATOR(pg_catalog.=) e.table_id;
COMMENT ON VIEW dbext.entry_type IS 'Mutation constraints by entry type, in order of declaration: the first that applies to an entry''s first image is its type.';

CREATE VIEW dbext.column_bounds AS
SELECT pg_catalog.format('%I.%I', t.schema_name, t.table_name) AS table_name, c.column_name, b.low, b.high, b.grid
FROM dbext_private.column_bounds AS b
JOIN dbext_private.tracked_column AS c ON c.table_id OPERATOR(pg_catalog.=) b.table_id AND c.position OPERATOR(pg_catalog.=) b.position
JOIN dbext_private.tracked_table AS t ON t.table_id OPERATOR(pg_catalog.=) b.table_id;
COMMENT ON VIEW dbext.column_bounds IS 'What the values of columns are said to lie between (dp_bounds): later releases sum them so.';
COMMENT ON COLUMN dbext.column_bounds.table_name IS 'The table';
COMMENT ON COLUMN dbext.column_bounds.column_name IS 'The column';
COMMENT ON COLUMN dbext.column_bounds.low IS 'Smaller values count as this one';
COMMENT ON COLUMN dbext.column_bounds.high IS 'Larger values count as this one';
COMMENT ON COLUMN dbext.column_bounds.grid IS 'Values are rounded to multiples of this';

CREATE VIEW dbext.schema_event AS
SELECT pg_catalog.format('%I.%I', t.schema_name, t.table_name) AS table_name, e.kind, e.description,
       dbext_private.public_moment(e.table_id, e.from_tick OPERATOR(pg_catalog.-) 1) AS from_moment,
       dbext_private.public_moment(e.table_id, e.through_tick) AS through_moment,
       e.recorded_at
FROM dbext_private.schema_event AS e
JOIN dbext_private.tracked_table AS t ON t.table_id OPERATOR(pg_catalog.=) e.table_id;
COMMENT ON VIEW dbext.schema_event IS 'Changes of tracked tables that broke capture; through_moment is NULL while a table is not repaired.';

CREATE VIEW dbext.release_status AS
SELECT r.name AS release, pg_catalog.format('%I.%I', t.schema_name, t.table_name) AS table_name,
       r.plan OPERATOR(pg_catalog.->>) 'kind' AS kind, r.plan OPERATOR(pg_catalog.->>) 'measure' AS measure,
       CASE WHEN r.last_error IS NOT NULL THEN pg_catalog.format('failed with SQLSTATE %s', r.last_error)
            WHEN r.next_answer OPERATOR(pg_catalog.<) r.next_period OR r.next_end OPERATOR(pg_catalog.<=) h.tick THEN 'due'
            WHEN r.target IS NOT NULL AND r.delivered OPERATOR(pg_catalog.<) (r.next_answer OPERATOR(pg_catalog.-) 1) THEN 'to be delivered'
            WHEN r.state OPERATOR(pg_catalog.=) 'finished' THEN 'horizon reached'
            ELSE 'waiting' END AS status,
       EXISTS (SELECT FROM dbext_private.schema_event AS e
               WHERE e.table_id OPERATOR(pg_catalog.=) r.table_id AND e.through_tick IS NULL) AS capture_gap,
       r.next_answer OPERATOR(pg_catalog.-) 1 AS published,
       r.target, r.delivered,
       (r.plan OPERATOR(pg_catalog.->>) 'horizon')::pg_catalog.int8 AS horizon,
       dbext_private.public_moment(r.table_id, r.last_end) AS last_published,
       dbext_private.public_moment(r.table_id, r.next_end) AS next_due,
       dbext_private.public_moment(r.table_id, r.horizon_end) AS horizon_end,
       h2.epoch,
       CASE WHEN r.horizon_end IS NULL THEN NULL
            WHEN NOT h2.renews THEN 'ends'
            WHEN h2.reserved OPERATOR(pg_catalog.>) h2.epoch THEN 'next epoch reserved'
            WHEN h2.reserved OPERATOR(pg_catalog.<) h2.epoch OR r.next_period OPERATOR(pg_catalog.>) h2.lead_from THEN 'next epoch does not fit the budget'
            ELSE 'next epoch not reserved yet' END AS at_horizon,
       (r.plan OPERATOR(pg_catalog.->>) 'epsilon')::pg_catalog.numeric AS epsilon,
       r.created_by, r.created_at, r.declaration
FROM dbext_private.release AS r
JOIN dbext_private.tracked_table AS t ON t.table_id OPERATOR(pg_catalog.=) r.table_id
JOIN dbext_private.seal_head AS h ON h.table_id OPERATOR(pg_catalog.=) r.table_id
CROSS JOIN LATERAL (
    SELECT e.renews, e.epoch, e.epoch OPERATOR(pg_catalog.*) e.length OPERATOR(pg_catalog.-) GREATEST(1, e.length OPERATOR(pg_catalog./) 10) OPERATOR(pg_catalog.+) 1 AS lead_from,
           (SELECT count(*) FROM dbext_private.ledger AS l
            WHERE l.release_id OPERATOR(pg_catalog.=) r.release_id AND l.kind OPERATOR(pg_catalog.=) 'reserve') AS reserved
    FROM (SELECT coalesce((r.plan OPERATOR(pg_catalog.->>) 'renews')::pg_catalog.bool, false) AS renews, (r.plan OPERATOR(pg_catalog.->>) 'horizon')::pg_catalog.int8 AS length,
                 CASE WHEN (r.plan OPERATOR(pg_catalog.->>) 'renews')::pg_catalog.bool
                      THEN (r.next_period OPERATOR(pg_catalog.-) 1) OPERATOR(pg_catalog./) (r.plan OPERATOR(pg_catalog.->>) 'horizon')::pg_catalog.int8 OPERATOR(pg_catalog.+) 1 END AS epoch) AS e) AS h2
WHERE r.state OPERATOR(pg_catalog.<>) 'dropped';
COMMENT ON VIEW dbext.release_status IS 'Every release: how far it is published, what is next, and whether something is wrong.';

CREATE VIEW dbext.budget_status AS
SELECT b.name AS budget, pg_catalog.format('%I.%I', t.schema_name, t.table_name) AS table_name,
       dbext_private.public_subject(t.table_id) AS protects, b.epsilon, b.delta, f.spent, f.reserved, f."left", b.key_delta
FROM dbext_private.budget_figures() AS f
JOIN dbext_private.budget AS b ON b.budget_id OPERATOR(pg_catalog.=) f.budget_id
JOIN dbext_private.tracked_table AS t ON t.budget_id OPERATOR(pg_catalog.=) b.budget_id;
COMMENT ON VIEW dbext.budget_status IS
    'Budgets by table. spent: what has left; reserved: what running releases will still publish; left: what may still be asked for. All in epsilon, for the worst entry.';

CREATE VIEW dbext.ledger AS
SELECT l.ledger_no, b.name AS budget, pg_catalog.format('%I.%I', t.schema_name, t.table_name) AS table_name, l.kind, r.name AS release, l.question_id,
       l.epsilon, l.charges, l.recorded_by, l.recorded_at, u.adds_in
FROM dbext_private.ledger AS l
JOIN dbext_private.budget AS b ON b.budget_id OPERATOR(pg_catalog.=) l.budget_id
LEFT JOIN dbext_private.tracked_table AS t ON t.table_id OPERATOR(pg_catalog.=) l.table_id
LEFT JOIN dbext_private.release AS r ON r.release_id OPERATOR(pg_catalog.=) l.release_id
LEFT JOIN LATERAL (
    SELECT pg_catalog.string_agg(DISTINCT CASE WHEN (c OPERATOR(pg_catalog.->>) 'pure')::pg_catalog.bool OR b.delta OPERATOR(pg_catalog.=) b.key_delta
                                          THEN 'epsilon' ELSE 'rho' END, ' and ') AS adds_in
    FROM pg_catalog.jsonb_array_elements(CASE pg_catalog.jsonb_typeof(l.charges) WHEN 'array' THEN l.charges END) AS c) AS u ON true;
COMMENT ON VIEW dbext.ledger IS 'Everything ever charged, reserved or given back, for administrators.';

CREATE VIEW dbext.seal AS
SELECT pg_catalog.format('%I.%I', t.schema_name, t.table_name) AS table_name, s.seal_no,
       dbext_private.public_moment(s.table_id, s.first_tick OPERATOR(pg_catalog.-) 1) AS from_moment, s.boundary AS through_moment,
       s.sealed_at, s.taken, s.late, s.mismatched
FROM dbext_private.seal AS s
JOIN dbext_private.tracked_table AS t ON t.table_id OPERATOR(pg_catalog.=) s.table_id;
COMMENT ON VIEW dbext.seal IS 'Every seal with its exact row counts: for administrators alone, who may see raw data anyway.';

CREATE VIEW dbext.capture_check AS
SELECT c.table_name, c.seal_no, c.sealed_at, c.recorded, c.written, c.rewritten, c.mismatched,
       pg_catalog.concat_ws('; ',
           CASE WHEN c.mismatched OPERATOR(pg_catalog.>) 0
               THEN 'entries were changed unseen before they changed again: dp_rebase makes it good, dp_mark says so to readers' END,
           CASE WHEN c.rewritten
               THEN 'the table has new files, as after VACUUM FULL, CLUSTER, TRUNCATE or ALTER TABLE: dp_recount tells whether rows changed' END,
           CASE WHEN c.written OPERATOR(pg_catalog.>) c.recorded
               THEN 'more rows were written than recorded, as by rolled back statements and updates that change nothing tracked: dp_recount tells' END
       ) AS finding
FROM (
    SELECT pg_catalog.format('%I.%I', t.schema_name, t.table_name) AS table_name, s.seal_no, s.sealed_at, s.taken AS recorded,
           s.written OPERATOR(pg_catalog.-) pg_catalog.lag(s.written) OVER seals AS written,
           coalesce(s.files OPERATOR(pg_catalog.<>) pg_catalog.lag(s.files) OVER seals, false) AS rewritten, s.mismatched
    FROM dbext_private.seal AS s
    JOIN dbext_private.tracked_table AS t ON t.table_id OPERATOR(pg_catalog.=) s.table_id
    WINDOW seals AS (PARTITION BY s.table_id ORDER BY s.seal_no)
) AS c;
COMMENT ON VIEW dbext.capture_check IS
    'What each seal saw of changes that triggers cannot see. For administrators alone: a public mark that followed from row counts would leak them.';

CREATE VIEW dbext.budget_use AS
SELECT b.name AS budget, pg_catalog.format('%I.%I', t.schema_name, t.table_name) AS table_name, u.kind, u.name, u.epsilon, u.share, u.adds_in
FROM dbext_private.budget_uses() AS u
JOIN dbext_private.budget AS b ON b.budget_id OPERATOR(pg_catalog.=) u.budget_id
JOIN dbext_private.tracked_table AS t ON t.table_id OPERATOR(pg_catalog.=) u.table_id;
COMMENT ON VIEW dbext.budget_use IS
    'What each release and question takes by itself: its epsilon, and its share of a budget that adds up in its unit alone.';

COMMENT ON COLUMN dbext.tracked_table.table_name IS 'The table';
COMMENT ON COLUMN dbext.tracked_table.tracked IS 'Whether its mutations are being captured';
COMMENT ON COLUMN dbext.tracked_table.protects IS 'What the guarantee is about';
COMMENT ON COLUMN dbext.tracked_table.tick IS 'Its time granule: every period and window is a whole number of ticks';
COMMENT ON COLUMN dbext.tracked_table.time_zone IS 'The zone in which its ticks begin and end';
COMMENT ON COLUMN dbext.tracked_table.history_begins IS 'Start of the tick in which it was tracked first';
COMMENT ON COLUMN dbext.tracked_table.capture IS 'Whether its mutations are captured by statement or by row';
COMMENT ON COLUMN dbext.tracked_table.sealed_up_to IS 'Everything up to this moment is sealed';
COMMENT ON COLUMN dbext.tracked_table.budget IS 'The budget that its losses count in';
COMMENT ON COLUMN dbext.entry_type.table_name IS 'The table';
COMMENT ON COLUMN dbext.entry_type.type_no IS 'Order of declaration';
COMMENT ON COLUMN dbext.entry_type.name IS 'Name of the type';
COMMENT ON COLUMN dbext.entry_type.applies_to IS 'Which first images make an entry of this type';
COMMENT ON COLUMN dbext.entry_type.max_mutations IS 'Most ticks in which an entry may change; NULL: no limit';
COMMENT ON COLUMN dbext.entry_type.active_within_ticks IS 'An entry may change within so many ticks of its first; NULL: no limit';
COMMENT ON COLUMN dbext.entry_type.at_limit IS 'What becomes of an entry at its time limit: it stays, or leaves';
COMMENT ON COLUMN dbext.schema_event.table_name IS 'The table';
COMMENT ON COLUMN dbext.schema_event.kind IS 'What happened';
COMMENT ON COLUMN dbext.schema_event.description IS 'What happened, in words';
COMMENT ON COLUMN dbext.schema_event.from_moment IS 'Windows that reach past this moment are marked';
COMMENT ON COLUMN dbext.schema_event.through_moment IS 'Until when; NULL while it is not repaired';
COMMENT ON COLUMN dbext.schema_event.recorded_at IS 'When it was noticed';
COMMENT ON COLUMN dbext.release_status.release IS 'Name of the release and of its table in dp_release';
COMMENT ON COLUMN dbext.release_status.table_name IS 'The table it is about';
COMMENT ON COLUMN dbext.release_status.kind IS 'disjoint, sliding, running_total or once';
COMMENT ON COLUMN dbext.release_status.measure IS 'What its counts mean';
COMMENT ON COLUMN dbext.release_status.status IS 'waiting, due, to be delivered, horizon reached, or failed with an SQLSTATE';
COMMENT ON COLUMN dbext.release_status.capture_gap IS 'Whether its table has a mark that is not repaired';
COMMENT ON COLUMN dbext.release_status.published IS 'Periods published';
COMMENT ON COLUMN dbext.release_status.target IS 'Where it is read; NULL: in this database';
COMMENT ON COLUMN dbext.release_status.delivered IS 'Periods that are at its target';
COMMENT ON COLUMN dbext.release_status.horizon IS 'Periods that its noise is calibrated for, in all or in each epoch; NULL: endless';
COMMENT ON COLUMN dbext.release_status.horizon_end IS 'When the horizon, or the present epoch, ends; NULL: never';
COMMENT ON COLUMN dbext.release_status.epoch IS 'Epoch of the next period, of running totals that renew themselves';
COMMENT ON COLUMN dbext.release_status.at_horizon IS 'What happens then: ends, next epoch reserved, next epoch not reserved yet (it will be with the last tenth of the epoch), or next epoch does not fit the budget';
COMMENT ON COLUMN dbext.release_status.last_published IS 'End of the last published period';
COMMENT ON COLUMN dbext.release_status.next_due IS 'When the next period can be published';
COMMENT ON COLUMN dbext.release_status.epsilon IS 'Lifetime loss it promised';
COMMENT ON COLUMN dbext.release_status.created_by IS 'Who declared it';
COMMENT ON COLUMN dbext.release_status.created_at IS 'When';
COMMENT ON COLUMN dbext.release_status.declaration IS 'The declaration';
COMMENT ON COLUMN dbext.budget_status.budget IS 'Name of the budget';
COMMENT ON COLUMN dbext.budget_status.table_name IS 'A table whose losses count in it';
COMMENT ON COLUMN dbext.budget_status.protects IS 'What the guarantee is about';
COMMENT ON COLUMN dbext.budget_status.epsilon IS 'What no entry may lose more than';
COMMENT ON COLUMN dbext.budget_status.delta IS 'The delta it is for; 0: pure differential privacy';
COMMENT ON COLUMN dbext.budget_status.spent IS 'What has left';
COMMENT ON COLUMN dbext.budget_status.reserved IS 'What running releases will still publish';
COMMENT ON COLUMN dbext.budget_status."left" IS 'What may still be asked for';
COMMENT ON COLUMN dbext.budget_status.key_delta IS 'The part of delta that is set aside for group keys taken from the data';
COMMENT ON COLUMN dbext.budget_use.budget IS 'Name of the budget';
COMMENT ON COLUMN dbext.budget_use.table_name IS 'The table';
COMMENT ON COLUMN dbext.budget_use.kind IS 'release, dropped release, question or lost history';
COMMENT ON COLUMN dbext.budget_use.name IS 'Name of the release, or number of the question';
COMMENT ON COLUMN dbext.budget_use.epsilon IS 'What it would cost by itself';
COMMENT ON COLUMN dbext.budget_use.share IS 'Its share of the budget if all of that adds up in its unit';
COMMENT ON COLUMN dbext.budget_use.adds_in IS 'In what its price adds up with those of others: epsilon, or rho';
COMMENT ON COLUMN dbext.ledger.ledger_no IS 'Number of the row';
COMMENT ON COLUMN dbext.ledger.budget IS 'The budget charged';
COMMENT ON COLUMN dbext.ledger.table_name IS 'The table';
COMMENT ON COLUMN dbext.ledger.kind IS 'reserve, publish, return, question, budget or lost';
COMMENT ON COLUMN dbext.ledger.release IS 'The release it is about';
COMMENT ON COLUMN dbext.ledger.question_id IS 'The question it is about';
COMMENT ON COLUMN dbext.ledger.epsilon IS 'What was asked for; 0 where nothing new is reserved';
COMMENT ON COLUMN dbext.ledger.charges IS 'Filters and noise charged, for the accountant';
COMMENT ON COLUMN dbext.ledger.adds_in IS 'In what its charges add up with others: epsilon, rho or both; NULL where nothing is charged';
COMMENT ON COLUMN dbext.ledger.recorded_by IS 'Who';
COMMENT ON COLUMN dbext.ledger.recorded_at IS 'When';
COMMENT ON COLUMN dbext.capture_check.table_name IS 'The table';
COMMENT ON COLUMN dbext.capture_check.seal_no IS 'Number of the pass';
COMMENT ON COLUMN dbext.capture_check.sealed_at IS 'When';
COMMENT ON COLUMN dbext.capture_check.recorded IS 'Log rows it took';
COMMENT ON COLUMN dbext.capture_check.written IS 'Rows written since the pass before, by PostgreSQL''s statistics: rolled back ones and unchanged ones count, too';
COMMENT ON COLUMN dbext.capture_check.rewritten IS 'Whether the table or a partition has other files than at the pass before';
COMMENT ON COLUMN dbext.capture_check.mismatched IS 'Entries whose logged old image was not the settled one';
COMMENT ON COLUMN dbext.capture_check.finding IS 'What that may mean and what to do; empty: nothing';
COMMENT ON COLUMN dbext.seal.table_name IS 'The table';
COMMENT ON COLUMN dbext.seal.seal_no IS 'Number of the pass';
COMMENT ON COLUMN dbext.seal.from_moment IS 'Start of the first tick it closed';
COMMENT ON COLUMN dbext.seal.through_moment IS 'End of the last tick it closed';
COMMENT ON COLUMN dbext.seal.sealed_at IS 'When';
COMMENT ON COLUMN dbext.seal.taken IS 'Log rows it took';
COMMENT ON COLUMN dbext.seal.late IS 'Of these, rows whose own tick was closed already';
COMMENT ON COLUMN dbext.seal.mismatched IS 'Rows whose logged old image was not the settled one';
