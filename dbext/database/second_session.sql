-- name: parts
-- What a connection to this very database is made of, and the quoted schema in which dblink lives.
SELECT r.second_session, current_database()::text AS database, coalesce(quote_ident(n.nspname), '') AS schema,
       current_setting('transaction_timeout', true) IS NOT NULL AS has_transaction_timeout
FROM dbext_private.runtime AS r
LEFT JOIN pg_extension AS e ON e.extname = 'dblink'
LEFT JOIN pg_namespace AS n ON n.oid = e.extnamespace

-- name: in_second_session
-- Have something charged and committed in a second session.
SELECT dbext_private.in_second_session($1::text, $2::jsonb) AS reply
