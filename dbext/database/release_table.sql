-- name: existing
-- Which of a release's view and table still exist, the view first.
SELECT c.relname AS name, CASE c.relkind WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END AS kind
FROM pg_class AS c
WHERE c.relnamespace = 'dp_release'::regnamespace
    AND ((c.relname = $1::text AND c.relkind = 'v') OR (c.relname = $2::text AND c.relkind IN ('r', 'p')))
ORDER BY c.relkind DESC
