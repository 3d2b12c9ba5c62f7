-- What is public about tracked tables, budgets and releases. Nothing here depends on the data of a tracked table.

CREATE FUNCTION dbext_private.public_moment(table_id integer, tick bigint) RETURNS timestamptz
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT dbext_private.table_tick_end(public_moment.table_id, public_moment.tick)
$$;
COMMENT ON FUNCTION dbext_private.public_moment(integer, bigint) IS 'When a tick of a tracked table ends, for readers of views.';

CREATE FUNCTION dbext_private.public_subject(table_id integer) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT dbext_private.protected_subject(public_subject.table_id)
$$;
COMMENT ON FUNCTION dbext_private.public_subject(integer) IS 'What is protected in a tracked table, for readers of views.';

CREATE TYPE dbext_private.budget_figures AS (budget_id integer, spent numeric, reserved numeric, "left" numeric);
COMMENT ON TYPE dbext_private.budget_figures IS 'Figures of one budget.';

CREATE FUNCTION dbext_private.budget_figures() RETURNS SETOF dbext_private.budget_figures
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT * FROM jsonb_populate_recordset(NULL::dbext_private.budget_figures, dbext_private.call('budget_status', '{}'));
END $$;
COMMENT ON FUNCTION dbext_private.budget_figures() IS 'What the accountant says about every budget now.';

CREATE TYPE dbext_private.budget_use AS (budget_id integer, table_id integer, kind text, name text, epsilon numeric, share numeric);
COMMENT ON TYPE dbext_private.budget_use IS 'What one release or question takes of a budget.';

CREATE FUNCTION dbext_private.budget_uses() RETURNS SETOF dbext_private.budget_use
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT * FROM jsonb_populate_recordset(NULL::dbext_private.budget_use, dbext_private.call('budget_use', '{}'));
END $$;
COMMENT ON FUNCTION dbext_private.budget_uses() IS 'What the accountant says about every release and question.';

CREATE VIEW dbext.tracked_table AS
SELECT pg_catalog.format('%I.%I', t.schema_name, t.table_name) AS table_name,
       t.tracked,
       dbext_private.public_subject(t.table_id) AS protects,
       pg_catalog.format('%s %s', t.tick_size, CASE t.tick_kind WHEN 'day' THEN 'days' WHEN 'month' THEN 'months' ELSE 'microseconds' END) AS tick,
       t.time_zone,
       dbext_private.public_moment(t.table_id, t.first_tick OPERATOR(pg_catalog.-) 1) AS history_begins,
       dbext_private.public_moment(t.table_id, h.tick) AS sealed_up_to,
       b.name AS budget
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
       CASE WHEN r.state OPERATOR(pg_catalog.=) 'finished' THEN 'horizon reached'
            WHEN r.last_error IS NOT NULL THEN pg_catalog.format('failed with SQLSTATE %s', r.last_error)
            WHEN r.next_end OPERATOR(pg_catalog.<=) h.tick THEN 'due'
            ELSE 'waiting' END AS status,
       EXISTS (SELECT FROM dbext_private.schema_event AS e
               WHERE e.table_id OPERATOR(pg_catalog.=) r.table_id AND e.through_tick IS NULL) AS capture_gap,
       r.next_period OPERATOR(pg_catalog.-) 1 AS published,
       (r.plan OPERATOR(pg_catalog.->>) 'horizon')::pg_catalog.int8 AS horizon,
       dbext_private.public_moment(r.table_id, r.last_end) AS last_published,
       dbext_private.public_moment(r.table_id, r.next_end) AS next_due,
       (r.plan OPERATOR(pg_catalog.->>) 'epsilon')::pg_catalog.numeric AS epsilon,
       r.created_by, r.created_at, r.declaration
FROM dbext_private.release AS r
JOIN dbext_private.tracked_table AS t ON t.table_id OPERATOR(pg_catalog.=) r.table_id
JOIN dbext_private.seal_head AS h ON h.table_id OPERATOR(pg_catalog.=) r.table_id
WHERE r.state OPERATOR(pg_catalog.<>) 'dropped';
COMMENT ON VIEW dbext.release_status IS 'Every release: how far it is published, what is next, and whether something is wrong.';

CREATE VIEW dbext.budget_status AS
SELECT b.name AS budget, pg_catalog.format('%I.%I', t.schema_name, t.table_name) AS table_name,
       dbext_private.public_subject(t.table_id) AS protects, b.epsilon, b.delta, f.spent, f.reserved, f."left"
FROM dbext_private.budget_figures() AS f
JOIN dbext_private.budget AS b ON b.budget_id OPERATOR(pg_catalog.=) f.budget_id
JOIN dbext_private.tracked_table AS t ON t.budget_id OPERATOR(pg_catalog.=) b.budget_id;
COMMENT ON VIEW dbext.budget_status IS
    'Budgets by table. spent: what has left; reserved: what running releases will still publish; left: what may still be asked for. All in epsilon, for the worst entry.';

CREATE VIEW dbext.budget_use AS
SELECT b.name AS budget, pg_catalog.format('%I.%I', t.schema_name, t.table_name) AS table_name, u.kind, u.name, u.epsilon, u.share
FROM dbext_private.budget_uses() AS u
JOIN dbext_private.budget AS b ON b.budget_id OPERATOR(pg_catalog.=) u.budget_id
JOIN dbext_private.tracked_table AS t ON t.table_id OPERATOR(pg_catalog.=) u.table_id;
COMMENT ON VIEW dbext.budget_use IS
    'What each release and question takes by itself: its epsilon, and its share of the budget in the unit that adds up (rho when delta > 0).';
