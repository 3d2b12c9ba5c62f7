-- name: existing
-- Which of a release's view and table still exist, the view first.
SELECT c.relname AS name, CASE c.relkind WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END AS kind
FROM pg_class AS c
WHERE c.relnamespace = 'dp_release'::regnamespace
    AND ((c.relname = $1::text AND c.relkind = 'v') OR (c.relname IN ($2::text, $3::text) AND c.relkind IN ('r', 'p')))
ORDER BY c.relkind DESC

-- name: lock_timeout
-- How long this session waits for locks.
SELECT current_setting('lock_timeout') AS wait

-- name: set_lock_timeout
-- Wait for locks no longer than this until the transaction ends.
SELECT set_config('lock_timeout', $1::text, true)
