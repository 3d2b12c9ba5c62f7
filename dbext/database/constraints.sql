-- name: lock
-- Keep seals away: what entries are admitted under must not change in the middle of one.
SELECT h.tick FROM dbext_private.seal_head AS h WHERE h.table_id = $1::integer FOR UPDATE

-- name: lock_table
-- Keep the table with its budget: whoever gives it another takes this lock, too.
SELECT t.table_id FROM dbext_private.tracked_table AS t WHERE t.table_id = $1::integer FOR NO KEY UPDATE

-- name: add
-- Append an entry type; it is tried after those declared before it.
INSERT INTO dbext_private.entry_type (table_id, type_no, name, applies_to, applies_to_text, max_mutations, active_within, at_limit,
    loosest_max_mutations, loosest_active_within)
SELECT $1::integer, coalesce(max(e.type_no), 0) + 1, $2::text, $3::jsonb, $4::text, $5::integer, $6::bigint, $7::text, $5::integer, $6::bigint
FROM dbext_private.entry_type AS e WHERE e.table_id = $1::integer
RETURNING type_no

-- name: alter
-- Replace the limits of a type.
UPDATE dbext_private.entry_type AS e SET max_mutations = $3::integer, active_within = $4::bigint, at_limit = $5::text,
    loosest_max_mutations = $6::integer, loosest_active_within = $7::bigint
WHERE e.table_id = $1::integer AND e.type_no = $2::integer

-- name: freeze
-- Entries whose time is over stay frozen when more time is given.
UPDATE ${admission} AS a SET frozen = true FROM dbext_private.seal_head AS h
WHERE h.table_id = $1::integer AND a.type_no = $2::integer AND NOT a.frozen AND a.first_tick + $3::bigint <= h.tick

-- name: leave_index
-- Finds the entries of a type that are due to leave.
CREATE INDEX IF NOT EXISTS admission_${table}_leave_${type} ON ${admission} (first_tick) WHERE present AND type_no = ${type}
