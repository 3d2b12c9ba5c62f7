-- name: releases
-- Every release ever declared, with the tolerance stated for it.
SELECT r.release_id, r.name, r.table_id, r.plan::text AS plan, r.state, r.next_period, r.next_answer, r.next_end, r.summed_through, r.created_by,
       t.tolerance::text AS tolerance
FROM dbext_private.release AS r LEFT JOIN dbext_private.tolerance AS t USING (release_id) ORDER BY r.release_id

-- name: tables
-- Tracked tables by number.
SELECT t.table_id FROM dbext_private.tracked_table AS t ORDER BY t.table_id

-- name: forgotten
-- Last tick whose single changes were forgotten.
SELECT t.forgotten_through FROM dbext_private.tracked_table AS t WHERE t.table_id = $1::integer

-- name: node_facts
-- Nodes with how they stand to the ledger row of the transaction that drew them. A row's xmin counts from the transaction's own number;
-- the ledger row is written last, so that an xmin above the ledger row's means that the node was written again. Nothing is known of rows
-- that came into this database by a restore.
SELECT count(*) AS nodes,
       coalesce(jsonb_agg(DISTINCT cardinality(n.noisy)), '[]')::text AS widths,
       count(*) FILTER (WHERE l.ledger_no IS NULL) AS uncharged,
       count(*) FILTER (WHERE l.recorded_at >= h.since) AS known,
       count(*) FILTER (WHERE l.recorded_at >= h.since
           AND (n.xmin::text::bigint - n.drawn_in::text::numeric % 4294967296 + 4294967296) % 4294967296
             > (l.xmin::text::bigint - l.recorded_in::text::numeric % 4294967296 + 4294967296) % 4294967296) AS rewritten
FROM dbext_private.node AS n
LEFT JOIN dbext_private.ledger AS l ON l.release_id = n.release_id AND l.kind = 'publish' AND l.recorded_in = n.drawn_in
CROSS JOIN (SELECT CASE WHEN dbext_private.is_home() THEN coalesce(max(k.since), '-infinity') ELSE 'infinity' END AS since
    FROM dbext_private.cluster_identity AS k) AS h
WHERE n.release_id = $1::integer AND n.stream_no = $2::integer

-- name: node_texts
-- The nodes of a stream in order of number, their cells as one text.
SELECT n.node_no, array_to_string(n.noisy, ',') AS noisy
FROM dbext_private.node AS n WHERE n.release_id = $1::integer AND n.stream_no = $2::integer ORDER BY n.node_no

-- name: ledger_of_release
-- The ledger rows of a release in order.
SELECT l.kind, l.budget_id, l.charges::text AS charges FROM dbext_private.ledger AS l WHERE l.release_id = $1::integer ORDER BY l.ledger_no

-- name: questions
-- Answered questions with the ledger rows that charge them.
SELECT q.question_id, q.table_id, q.first_tick, q.last_tick, q.measure, q.predicate, q.term, q.epsilon::text AS epsilon, q.answer, q.noise::text AS noise, q.pure,
       (SELECT coalesce(jsonb_agg(l.charges), '[]') FROM dbext_private.ledger AS l
        WHERE l.question_id = q.question_id AND l.kind = 'question' AND l.table_id = q.table_id)::text AS charges
FROM dbext_private.question AS q ORDER BY q.question_id

-- name: lost_questions
-- Ledger rows of questions whose answer is gone.
SELECT count(*) AS lost FROM dbext_private.ledger AS l
WHERE l.kind = 'question' AND NOT EXISTS (SELECT FROM dbext_private.question AS q WHERE q.question_id = l.question_id)

-- name: budget_history
-- What the ledger says of the figures of a budget, in order.
SELECT l.epsilon::text AS epsilon, l.charges ->> 'delta' AS delta, coalesce(l.charges ->> 'key_delta', '0') AS key_delta,
       l.recorded_at::text AS recorded_at
FROM dbext_private.ledger AS l WHERE l.budget_id = $1::integer AND l.kind = 'budget' ORDER BY l.ledger_no

-- name: budgets
-- Every budget with the delta declared acceptable for it.
SELECT b.budget_id, b.name, a.delta::text AS acceptable FROM dbext_private.budget AS b LEFT JOIN dbext_private.acceptable_delta AS a USING (budget_id)
ORDER BY b.budget_id

-- name: namesakes
-- Tables that took the name of a dropped one which had been charged, and do not share its budget.
SELECT format('%I.%I', n.schema_name, n.table_name) AS name
FROM dbext_private.tracked_table AS n JOIN dbext_private.tracked_table AS o
    ON (o.schema_name, o.table_name) = (n.schema_name, n.table_name) AND o.table_id < n.table_id AND o.budget_id IS DISTINCT FROM n.budget_id
WHERE n.budget_id IS NOT NULL AND EXISTS (SELECT FROM dbext_private.ledger AS l WHERE l.table_id = o.table_id AND l.kind IN ('question', 'publish'))

-- name: guards
-- What keeps the ledger append-only and nodes from being drawn twice.
SELECT EXISTS (SELECT FROM pg_trigger AS t WHERE t.tgrelid = 'dbext_private.ledger'::regclass AND t.tgname = 'ledger_append_only' AND t.tgenabled IN ('O', 'A')
           AND t.tgfoid = 'dbext_private.refuse_change()'::regprocedure) AS append_only,
       EXISTS (SELECT FROM pg_constraint AS c JOIN pg_index AS i ON i.indexrelid = c.conindid
           WHERE c.conrelid = 'dbext_private.node'::regclass AND c.conname = 'node_drawn_once' AND i.indisvalid AND i.indisunique) AS drawn_once,
       dbext_private.is_home() AS home

-- name: private_relations
-- Tables and views of the private schema (but the runtime row, which holds no data).
SELECT c.oid FROM pg_class AS c
WHERE c.relnamespace = 'dbext_private'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relname <> 'runtime'

-- name: exposed
-- Everything that lets somebody else read the private schema, in words.
WITH kept AS (${private_relations})
SELECT format('%s %I.%I reads %I', CASE v.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' ELSE 'a rule of table' END, s.nspname, v.relname, c.relname) AS leak
FROM kept AS k JOIN pg_class AS c USING (oid) JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid = k.oid
JOIN pg_rewrite AS w ON w.oid = d.objid JOIN pg_class AS v ON v.oid = w.ev_class JOIN pg_namespace AS s ON s.oid = v.relnamespace
WHERE s.nspname NOT IN ('dbext', 'dbext_private') GROUP BY 1
UNION ALL
SELECT format('role %s may read %I', CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END, c.relname)
FROM kept AS k JOIN pg_class AS c USING (oid)
CROSS JOIN LATERAL (
    SELECT e.grantee FROM aclexplode(c.relacl) AS e WHERE e.privilege_type = 'SELECT'
    UNION SELECT e.grantee FROM pg_attribute AS b, aclexplode(b.attacl) AS e WHERE b.attrelid = c.oid AND e.privilege_type = 'SELECT') AS a
WHERE a.grantee <> c.relowner
UNION ALL
SELECT format('%I belongs to role %s', c.relname, c.relowner::regrole) FROM kept AS k JOIN pg_class AS c USING (oid) WHERE c.relowner <> 'dbext_owner'::regrole
UNION ALL
SELECT format('role %I may act as dbext_owner', r.rolname) FROM pg_roles AS r
WHERE NOT r.rolsuper AND r.rolname <> 'dbext_owner' AND pg_has_role(r.oid, 'dbext_owner', 'MEMBER')
UNION ALL
SELECT format('publication %I sends %I', p.pubname, p.tablename) FROM pg_publication_tables AS p WHERE p.schemaname = 'dbext_private'
UNION ALL
SELECT format('%I inherits from or is inherited by %I', c.relname, o.relname) FROM kept AS k JOIN pg_inherits AS i ON k.oid IN (i.inhrelid, i.inhparent)
JOIN pg_class AS c ON c.oid = i.inhrelid JOIN pg_class AS o ON o.oid = i.inhparent
UNION ALL
SELECT format('trigger %I on %I', t.tgname, c.relname) FROM kept AS k JOIN pg_class AS c USING (oid) JOIN pg_trigger AS t ON t.tgrelid = k.oid
WHERE NOT t.tgisinternal AND t.tgname <> 'ledger_append_only'
UNION ALL
SELECT format('function %s acts as dbext_owner and is not of this extension', p.oid::regprocedure) FROM pg_proc AS p
WHERE p.prosecdef AND p.proowner = 'dbext_owner'::regrole AND p.pronamespace <> 'dbext_private'::regnamespace
    AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
ORDER BY 1

-- name: readers_of_all
-- Roles that may read every table of every database, these included.
SELECT r.rolname::text AS name FROM pg_roles AS r
WHERE NOT r.rolsuper AND r.rolname <> 'pg_read_all_data' AND pg_has_role(r.oid, 'pg_read_all_data', 'MEMBER') ORDER BY 1

-- name: seal_gaps
-- Seals that do not begin where the one before ended; and ticks that no seal closed, or that are beyond the last.
SELECT (SELECT count(*) FROM (
            SELECT s.first_tick, lag(s.last_tick, 1, t.first_tick - 1) OVER (ORDER BY s.seal_no) AS before
            FROM dbext_private.seal AS s WHERE s.table_id = t.table_id) AS s WHERE s.first_tick <> s.before + 1)
       + (h.tick <> coalesce((SELECT max(s.last_tick) FROM dbext_private.seal AS s WHERE s.table_id = t.table_id), t.first_tick - 1))::integer AS gaps,
       (SELECT coalesce(sum(s.late), 0) FROM dbext_private.seal AS s WHERE s.table_id = t.table_id)::bigint AS late,
       (SELECT count(*) FROM dbext_private.schema_event AS e WHERE e.table_id = t.table_id AND e.through_tick IS NULL) AS open_events
FROM dbext_private.tracked_table AS t JOIN dbext_private.seal_head AS h USING (table_id) WHERE t.table_id = $1::integer

-- name: unsealed_changes
-- Settled changes of ticks that no seal closed.
SELECT count(*) AS found FROM ${change} AS c, dbext_private.tracked_table AS t, dbext_private.seal_head AS h
WHERE t.table_id = $1::integer AND h.table_id = t.table_id AND (c.tick < t.first_tick OR c.tick > h.tick)

-- name: contributions
-- Entries that changed more often, or over a longer time, than the loosest limits of their type ever allowed; and entries of no known type.
SELECT count(*) AS entries, count(*) FILTER (
    WHERE a.type_no IS NULL OR e.type_no IS NULL AND a.type_no <> 0
       OR c.changes > e.loosest_max_mutations OR c.last - c.first > e.loosest_active_within) AS beyond
FROM (SELECT ${keys}, count(*) AS changes, min(c.tick) AS first, max(c.tick) AS last FROM ${change} AS c GROUP BY ${keys}) AS c
LEFT JOIN ${admission} AS a ON ${same_key}
LEFT JOIN dbext_private.entry_type AS e ON e.table_id = $1::integer AND e.type_no = a.type_no

-- name: record
-- Note that an audit was made and how it ended.
INSERT INTO dbext_private.audit (audited_by, passed, findings) VALUES ($1::text, $2::boolean, $3::jsonb)

-- name: accept_delta
-- Declare the largest acceptable delta of a budget.
INSERT INTO dbext_private.acceptable_delta (budget_id, delta, declared_by) VALUES ($1::integer, $2::numeric, $3::text)
ON CONFLICT (budget_id) DO UPDATE SET delta = excluded.delta, declared_by = excluded.declared_by, declared_at = clock_timestamp()

-- name: state_tolerance
-- State how large an error the decisions taken from a release can bear.
INSERT INTO dbext_private.tolerance (release_id, tolerance, stated_by) VALUES ($1::integer, $2::numeric, $3::text)
ON CONFLICT (release_id) DO UPDATE SET tolerance = excluded.tolerance, stated_by = excluded.stated_by, stated_at = clock_timestamp()
