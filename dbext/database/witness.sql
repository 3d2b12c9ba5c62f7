-- name: is_superuser
-- Whether the caller is a superuser.
SELECT r.rolsuper AS superuser FROM pg_roles AS r WHERE r.rolname = dbext_private.caller()

-- name: accepted
-- Which lost rows were charged again already.
SELECT a.fingerprint FROM dbext_private.accepted_loss AS a WHERE a.fingerprint = ANY ($1::text[])

-- name: accept
-- Remember lost rows that are charged again, or that charged nothing.
INSERT INTO dbext_private.accepted_loss (fingerprint) SELECT m FROM unnest($1::text[]) AS m ON CONFLICT DO NOTHING

-- name: table_named
-- The number of the tracked table of a name.
SELECT t.table_id FROM dbext_private.tracked_table AS t WHERE t.schema_name = $1::text AND t.table_name = $2::text ORDER BY t.table_id DESC LIMIT 1

-- name: trust_again
-- The ledger counts as whole again.
UPDATE dbext_private.witness AS w SET behind_since = NULL
