-- What goes on in the database: capture, seals, publication, budgets. Names and settings of ours only; no count that depends on data.

-- name: event_triggers
-- error, safe
-- Event triggers follow changes of tracked tables, and keep others than superusers from dropping the ledger.
SELECT w.name, CASE WHEN e.evtname IS NULL THEN 'it is missing' ELSE 'it is not always enabled' END,
    CASE WHEN e.evtname IS NOT NULL THEN format('ALTER EVENT TRIGGER %I ENABLE ALWAYS;', w.name) END
FROM {event_triggers} LEFT JOIN pg_event_trigger e ON e.evtname = w.name WHERE e.evtenabled IS DISTINCT FROM 'A'
UNION ALL
SELECT 'event_triggers', 'event triggers are switched off by a setting', 'ALTER SYSTEM RESET event_triggers; SELECT pg_reload_conf();'
WHERE current_setting('event_triggers', true) = 'off'

-- name: capture_triggers
-- error, safe
-- A tracked table whose triggers are missing or disabled changes unseen: what is published about it is no longer true.
SELECT m.relation::regclass::text, format('the trigger that captures %s is %s', m.event, CASE WHEN g.oid IS NULL THEN 'missing' ELSE 'not always enabled' END),
    CASE WHEN g.oid IS NULL THEN format('SELECT {api}.dp_rebase(%L);', {table}) ELSE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I;', m.relation::regclass, g.tgname) END
FROM dbext_private.tracked_table t
CROSS JOIN LATERAL (
    SELECT x.relation, x.event FROM dbext_private.triggers_missing(t.table_id, t.relation) x
    UNION SELECT o.tgrelid, split_part(p.proname, '_', 2) FROM pg_trigger o JOIN pg_proc p ON p.oid = o.tgfoid
    WHERE o.tgenabled = 'O' AND p.pronamespace = 'dbext_private'::regnamespace AND p.proname ~ ('^capture_[a-z]+_' || t.table_id || '$')
        AND NOT o.tgisinternal) m
LEFT JOIN pg_trigger g ON g.tgrelid = m.relation AND NOT g.tgisinternal
    AND g.tgfoid = to_regprocedure(dbext_private.capture_name(t.table_id, m.event) || '()')
WHERE t.tracked

-- name: capture_gaps
-- warning
-- While a mark is open, windows may miss mutations and are published with status capture_gap. dp_rebase records the table as it is now.
SELECT {table}, e.description, CASE WHEN EXISTS (SELECT FROM pg_class c WHERE c.oid = t.relation) THEN format('SELECT {api}.dp_rebase(%L);', {table}) END
FROM dbext_private.schema_event e JOIN dbext_private.tracked_table t USING (table_id) WHERE e.through_tick IS NULL

-- name: mismatches
-- warning
-- A logged image that differs from the settled one means that mutations went by unseen. dp_rebase settles what the table holds now.
SELECT {table}, 'seals met images that differ from what was settled', format('SELECT {api}.dp_rebase(%L);', {table})
FROM dbext_private.tracked_table t WHERE EXISTS (SELECT FROM dbext_private.seal s WHERE s.table_id = t.table_id AND s.mismatched > 0
    AND NOT EXISTS (SELECT FROM dbext_private.schema_event e WHERE e.table_id = s.table_id AND e.through_tick >= s.first_tick))

-- name: seal_lag
-- warning, safe
-- Nothing is published of ticks that are not sealed; a worker or a scheduled CALL dp_publish() seals them.
SELECT {table}, format('it is sealed up to %s only', dbext_private.table_tick_end(t.table_id, h.tick)), 'CALL {api}.dp_publish();'
FROM dbext_private.tracked_table t JOIN dbext_private.seal_head h USING (table_id)
WHERE t.tracked AND dbext_private.table_tick_end(t.table_id, h.tick + 2) <= clock_timestamp()

-- name: missed_periods
-- warning, safe
-- A period that is sealed and not published, or a release that failed, is waited for by its readers.
SELECT r.name, CASE WHEN r.last_error IS NOT NULL THEN format('its last publication failed with SQLSTATE %s', r.last_error)
    ELSE format('its period that ended at %s is not published', dbext_private.table_tick_end(r.table_id, r.next_end)) END,
    'CALL {api}.dp_publish();'
FROM dbext_private.release r JOIN dbext_private.seal_head h USING (table_id)
WHERE r.state <> 'dropped' AND (r.last_error IS NOT NULL OR r.state = 'active' AND r.next_end <= h.tick OR r.next_answer < r.next_period)

-- name: data_keys
-- note
-- Of keys taken from the data nothing limits how many are hidden: publication takes time and space for each, which whoever watches the server sees.
SELECT r.name, 'its group keys are taken from the data: publish on schedule, out of its readers'' sight', NULL
FROM dbext_private.release r WHERE r.state <> 'dropped' AND r.plan ? 'key_checks'

-- name: clock_steps
-- warning
-- When the clock was set back or runs ahead, mutations fall into later ticks than they should, though into one each.
SELECT {table}, format('a seal at %s says that it came after one at %s', s.sealed_at, before.sealed_at), NULL
FROM dbext_private.tracked_table t JOIN dbext_private.seal s USING (table_id)
JOIN dbext_private.seal before ON before.table_id = s.table_id AND before.seal_no = s.seal_no - 1
WHERE before.sealed_at > s.sealed_at
UNION ALL
SELECT {table}, format('it is sealed up to %s, which is still to come', h.boundary), NULL
FROM dbext_private.tracked_table t JOIN dbext_private.seal_head h USING (table_id) WHERE h.boundary > clock_timestamp()

-- name: other_cluster
-- error
-- In a restored, promoted, upgraded or copied database charges and noise that left elsewhere may be missing. Nothing is published until it is accepted.
SELECT current_database(), 'this is not the cluster, database or timeline that was last sealed', 'SELECT {api}.dp_confirm_upgrade();'
WHERE EXISTS (SELECT FROM dbext_private.cluster_identity) AND NOT dbext_private.is_home()

-- name: no_constraint
-- warning
-- Without a constraint nothing bounds what an entry loses, and releases without end are refused.
SELECT {table}, CASE WHEN t.sealed_unconstrained THEN 'entries were admitted before it had any constraint: they count as unconstrained for ever'
    ELSE 'no constraint says how often its entries change' END,
    CASE WHEN NOT t.sealed_unconstrained THEN format('SELECT {api}.dp_add_constraint(%L, ''any'', max_mutations => 3);', {table}) END
FROM dbext_private.tracked_table t
WHERE t.tracked AND (t.sealed_unconstrained OR NOT EXISTS (SELECT FROM dbext_private.entry_type e WHERE e.table_id = t.table_id))

-- name: no_budget
-- note
-- A table without a budget answers nothing and publishes nothing.
SELECT {table}, 'it has no budget', format('SELECT {api}.dp_set_budget(%L, epsilon => 1);', {table})
FROM dbext_private.tracked_table t WHERE t.tracked AND t.budget_id IS NULL

-- name: weak_budgets
-- warning
-- With chance delta a mechanism may reveal an entry outright; and with epsilon above 10 it hides little.
SELECT b.name, format('epsilon is %s and delta %s', b.epsilon, b.delta), NULL
FROM dbext_private.budget b WHERE (b.delta > 0.001 OR b.epsilon > 10) AND EXISTS (SELECT FROM dbext_private.tracked_table t WHERE t.budget_id = b.budget_id)

-- name: spent_budgets
-- note
-- A budget that is used up refuses every new question and release; what runs goes on.
SELECT b.name, format('of epsilon %s there is %s left', b.epsilon, f."left"), NULL
FROM dbext_private.budget_figures() f JOIN dbext_private.budget b USING (budget_id) WHERE f."left" < b.epsilon / 100

-- name: open_reservations
-- note
-- A declaration that is not committed keeps its loss reserved. One that was prepared and forgotten does so for ever.
SELECT 'release ' || o.release_id, coalesce('its declaration waits in prepared transaction ' || p.gid, 'its declaration is not committed'),
    CASE WHEN p.gid IS NOT NULL THEN format('ROLLBACK PREPARED %L;', p.gid) END
FROM dbext_private.open_reservation o LEFT JOIN pg_prepared_xacts p ON p.transaction::text::int8 =
    (o.declared_in::text::numeric % 4294967296)::int8
WHERE pg_xact_status(o.declared_in) = 'in progress'

-- name: delivery_lag
-- warning
-- What is published and not delivered is not seen by the readers of the release target; a worker with --release-dsn delivers it.
SELECT r.name, format('%s periods wait to be delivered to target %s', r.next_answer - 1 - r.delivered, r.target), NULL
FROM dbext_private.release r WHERE r.state <> 'dropped' AND r.target IS NOT NULL AND r.delivered < r.next_answer - 1

-- name: witness
-- error
-- A witness outside holds charges that this ledger has forgotten, or a required one is silent: nothing is drawn until dbext accept-restore, or a worker with --witness.
SELECT current_database(), CASE WHEN t.behind THEN 'this database was put back to an earlier state' ELSE 'no witness has vouched for it in time' END, NULL
FROM dbext_private.trust() t WHERE t.behind OR NOT t.vouched

-- name: no_witness
-- note
-- Without a witness outside, a ledger that was put back to an earlier state is noticed only where cluster or timeline changed. A worker with --witness or --release-dsn keeps one.
SELECT current_database(), 'no witness has ever seen its ledger', NULL FROM dbext_private.trust() t
WHERE NOT t.witnessed AND EXISTS (SELECT FROM dbext_private.ledger l WHERE l.kind IN ('publish', 'question'))

-- name: leader_lock
-- warning
-- Whoever holds the leader's lock keeps every worker standing by, and anybody may take it.
SELECT format('session %s', l.pid), format('%s holds the lock by which workers elect their leader, and is no worker', coalesce(a.usename, 'somebody')),
    format('SELECT pg_catalog.pg_terminate_backend(%s);', l.pid)
FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.granted AND (l.classid, l.objid, l.objsubid) = (1684170104, 1, 2)
    AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()) AND a.application_name IS DISTINCT FROM 'dbext worker'
