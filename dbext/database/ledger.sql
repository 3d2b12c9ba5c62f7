-- name: lock_budget
-- Take the row of a budget; what is read in later statements is current, and nobody charges meanwhile.
UPDATE dbext_private.budget AS b SET revision = b.revision + 1
WHERE b.budget_id = $1::integer
RETURNING b.budget_id, b.name, b.epsilon::text AS epsilon, (b.delta - b.key_delta)::text AS delta, b.key_delta::text AS key_delta

-- name: budget
-- A budget as it stands, without a lock.
SELECT b.budget_id, b.name, b.epsilon::text AS epsilon, (b.delta - b.key_delta)::text AS delta, b.key_delta::text AS key_delta
FROM dbext_private.budget AS b
WHERE b.budget_id = $1::integer

-- name: budget_of_table
-- The budget that a table belongs to.
SELECT t.budget_id FROM dbext_private.tracked_table AS t WHERE t.table_id = $1::integer

-- name: budget_named
-- The budget of a name.
SELECT b.budget_id FROM dbext_private.budget AS b WHERE b.name = $1::text

-- name: add_budget
-- Create a budget unless another session just did.
INSERT INTO dbext_private.budget (name, epsilon, delta) VALUES ($1::text, $2::numeric, $3::numeric) ON CONFLICT (name) DO NOTHING

-- name: change_budget
-- Set the figures of a locked budget.
UPDATE dbext_private.budget AS b SET epsilon = $2::numeric, delta = $3::numeric, key_delta = $4::numeric WHERE b.budget_id = $1::integer

-- name: move_table
-- Let a table belong to a budget.
UPDATE dbext_private.tracked_table AS t SET budget_id = $2::integer WHERE t.table_id = $1::integer

-- name: tables_of_budget
-- Tables whose losses add up in a budget.
SELECT t.table_id FROM dbext_private.tracked_table AS t WHERE t.budget_id = $1::integer ORDER BY t.table_id

-- name: budgets
-- Every budget that a table belongs to.
SELECT DISTINCT t.budget_id FROM dbext_private.tracked_table AS t WHERE t.budget_id IS NOT NULL ORDER BY t.budget_id

-- name: committed_charges
-- What a table is charged for: questions, lifetimes of releases that run, and what dropped releases had published.
SELECT l.charges::text AS charges
FROM dbext_private.ledger AS l
WHERE l.table_id = $1::integer AND (l.kind IN ('question', 'return')
    OR (l.kind = 'reserve' AND NOT EXISTS (
        SELECT FROM dbext_private.ledger AS r WHERE r.release_id = l.release_id AND r.kind = 'return')
        AND NOT EXISTS (
        SELECT FROM dbext_private.open_reservation AS o WHERE o.release_id = l.release_id AND pg_xact_status(o.declared_in) = 'aborted')))
ORDER BY l.ledger_no

-- name: committed_key_checks
-- Checks of hidden group keys: of releases, whether they run or not, and of histories that were lost. Aborted declarations have none.
SELECT l.key_checks::text AS key_checks
FROM dbext_private.ledger AS l
WHERE l.table_id = $1::integer AND l.key_checks <> '[]' AND (l.kind IN ('return', 'lost')
    OR (l.kind = 'reserve' AND NOT EXISTS (
        SELECT FROM dbext_private.ledger AS r WHERE r.release_id = l.release_id AND r.kind = 'return')
        AND NOT EXISTS (
        SELECT FROM dbext_private.open_reservation AS o WHERE o.release_id = l.release_id AND pg_xact_status(o.declared_in) = 'aborted')))
ORDER BY l.ledger_no

-- name: key_checks_of
-- Checks of hidden group keys that were reserved for a release.
SELECT l.key_checks::text AS key_checks FROM dbext_private.ledger AS l
WHERE l.release_id = $1::integer AND l.kind = 'reserve' AND l.key_checks <> '[]' ORDER BY l.ledger_no

-- name: own_budget_lock
-- Whether this very transaction has written to a budget: its lock would keep a second session waiting until it ends.
SELECT EXISTS (SELECT FROM pg_locks AS l
    WHERE l.pid = pg_backend_pid() AND l.granted AND l.locktype = 'relation' AND l.mode = 'RowExclusiveLock'
        AND l.relation = 'dbext_private.budget'::regclass) AS held

-- name: own_transaction
-- The number of this transaction.
SELECT pg_current_xact_id()::text AS number

-- name: open_reservation
-- Note that a reservation is for a declaration whose transaction has not ended.
INSERT INTO dbext_private.open_reservation (release_id, declared_in) VALUES ($1::integer, $2::xid8)

-- name: close_reservations
-- Forget which reservations were open, if their declarations' transactions have ended. Others may be doing so at this moment.
DELETE FROM dbext_private.open_reservation AS o
WHERE o.release_id IN (SELECT e.release_id FROM dbext_private.open_reservation AS e
    WHERE pg_xact_status(e.declared_in) IS DISTINCT FROM 'in progress' FOR UPDATE SKIP LOCKED)
RETURNING o.release_id

-- name: return_undeclared
-- Give back what was reserved for declarations that came to nothing: their transactions have ended, and there is no such release.
INSERT INTO dbext_private.ledger (budget_id, table_id, release_id, kind, charges, epsilon, recorded_by)
SELECT l.budget_id, l.table_id, l.release_id, 'return', '[]', 0, l.recorded_by
FROM dbext_private.ledger AS l
WHERE l.kind = 'reserve' AND l.release_id = ANY ($1::integer[])
    AND NOT EXISTS (SELECT FROM dbext_private.release AS r WHERE r.release_id = l.release_id)

-- name: spent_charges
-- What has left: answers to questions, and all that each release has published so far.
SELECT l.charges::text AS charges
FROM dbext_private.ledger AS l
WHERE l.table_id = $1::integer AND (l.kind = 'question' OR l.ledger_no IN (
    SELECT max(p.ledger_no) FROM dbext_private.ledger AS p WHERE p.table_id = $1::integer AND p.kind = 'publish' GROUP BY p.release_id))
ORDER BY l.ledger_no

-- name: lost_charges
-- What had left of a table in histories that this ledger has lost, one row for each.
SELECT l.charges::text AS charges FROM dbext_private.ledger AS l
WHERE l.table_id = $1::integer AND l.kind = 'lost' ORDER BY l.ledger_no

-- name: forget_loss_bounds
-- The bounds of a budget's tables hold no longer.
DELETE FROM dbext_private.loss_bound AS b USING dbext_private.tracked_table AS t WHERE b.table_id = t.table_id AND t.budget_id = $1::integer

-- name: published_charges
-- All that a release has published so far.
SELECT l.charges::text AS charges
FROM dbext_private.ledger AS l
WHERE l.release_id = $1::integer AND l.kind = 'publish'
ORDER BY l.ledger_no DESC LIMIT 1

-- name: reservations
-- What was reserved for each epoch of a release.
SELECT l.charges::text AS charges
FROM dbext_private.ledger AS l
WHERE l.release_id = $1::integer AND l.kind = 'reserve'
ORDER BY l.ledger_no

-- name: loss_bound
-- The bound on what a table is charged for, if it was certified under these terms.
SELECT b.pure_picos::text AS pure_picos, b.rho_picos::text AS rho_picos FROM dbext_private.loss_bound AS b WHERE b.table_id = $1::integer AND b.terms = $2::text

-- name: set_loss_bound
-- Certify a bound under these terms.
INSERT INTO dbext_private.loss_bound (table_id, terms, pure_picos, rho_picos) VALUES ($1::integer, $2::text, $3::numeric, $4::numeric)
ON CONFLICT (table_id) DO UPDATE SET terms = excluded.terms, pure_picos = excluded.pure_picos, rho_picos = excluded.rho_picos

-- name: append
-- Add a row to the ledger.
INSERT INTO dbext_private.ledger (budget_id, table_id, release_id, question_id, kind, charges, epsilon, recorded_by, key_checks)
VALUES ($1::integer, $2::integer, $3::integer, $4::bigint, $5::text, $6::jsonb, $7::numeric, $8::text, $9::jsonb)

-- name: uses
-- What each committed charge of a table is for, in order.
SELECT CASE l.kind WHEN 'question' THEN 'question' WHEN 'return' THEN 'dropped release' WHEN 'lost' THEN 'lost history' ELSE 'release' END AS kind,
       coalesce(r.name, 'question ' || l.question_id, 'ledger row ' || l.ledger_no) AS name, l.release_id, l.charges::text AS charges
FROM dbext_private.ledger AS l LEFT JOIN dbext_private.release AS r USING (release_id)
WHERE l.table_id = $1::integer AND (l.kind IN ('question', 'return', 'lost')
    OR (l.kind = 'reserve' AND r.release_id IS NOT NULL AND NOT EXISTS (
        SELECT FROM dbext_private.ledger AS b WHERE b.release_id = l.release_id AND b.kind = 'return')))
    AND l.charges <> '[]'
ORDER BY l.ledger_no
