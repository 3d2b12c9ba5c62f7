-- Rights that are wider than they should be: roles, grants, owners, and what stands where ours should.

-- name: role_attributes
-- error, safe
-- The roles of dbext are groups: one that can log in, or do more than its members should, gives its rights to whoever gets hold of it.
SELECT r.rolname, concat_ws(', ', CASE WHEN r.rolcanlogin THEN 'it can log in' END, CASE WHEN r.rolsuper THEN 'it is a superuser' END,
        CASE WHEN r.rolcreaterole THEN 'it makes roles' END, CASE WHEN r.rolcreatedb THEN 'it makes databases' END,
        CASE WHEN r.rolreplication THEN 'it replicates' END, CASE WHEN r.rolbypassrls AND r.rolname <> 'dbext_owner' THEN 'it passes row security' END,
        CASE WHEN NOT r.rolbypassrls AND r.rolname = 'dbext_owner' THEN 'it does not pass row security' END),
    format('ALTER ROLE %I NOLOGIN NOSUPERUSER NOCREATEROLE NOCREATEDB NOREPLICATION %s;', r.rolname,
        CASE r.rolname WHEN 'dbext_owner' THEN 'BYPASSRLS' ELSE 'NOBYPASSRLS' END)
FROM pg_roles r WHERE r.rolname IN ('dbext_owner', 'dbext_admin', 'dbext_analyst', 'dbext_reader')
    AND (r.rolcanlogin OR r.rolsuper OR r.rolcreaterole OR r.rolcreatedb OR r.rolreplication OR r.rolbypassrls <> (r.rolname = 'dbext_owner'))

-- name: owner_members
-- error, safe
-- dbext_owner owns the changelog, the exact sums and the noise: whoever may act as it reads everything.
SELECT m.rolname, format('it may act as %I', r.rolname), format('REVOKE %I FROM %I;', r.rolname, m.rolname)
FROM pg_auth_members a JOIN pg_roles r ON r.oid = a.roleid JOIN pg_roles m ON m.oid = a.member
WHERE 'dbext_owner' IN (r.rolname, m.rolname)

-- name: wide_members
-- warning
-- A reader or analyst who is also a member of a role of PostgreSQL that reads all data, statistics or files sees far more than releases.
SELECT p.rolname, format('it is a member of %I', r.rolname), format('REVOKE %I FROM %I;', r.rolname, p.rolname)
FROM ({people}) p JOIN pg_roles r ON r.rolname IN ('pg_read_all_data', 'pg_write_all_data', 'pg_monitor', 'pg_read_all_stats',
    'pg_read_all_settings', 'pg_stat_scan_tables', 'pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program')
WHERE pg_has_role(p.oid, r.oid, 'MEMBER')

-- name: reads_source
-- warning
-- Whoever may SELECT from a tracked table sees the rows themselves. dp_grant lets a role ask about it without that.
SELECT format('%I.%I', t.schema_name, t.table_name), format('%I may SELECT from it', p.rolname),
    format('REVOKE SELECT ON %I.%I FROM %I; SELECT {api}.dp_grant(%L, %L);', t.schema_name, t.table_name, p.rolname,
        format('%I.%I', t.schema_name, t.table_name), p.rolname)
FROM dbext_private.tracked_table t JOIN pg_class c ON c.oid = t.relation CROSS JOIN ({people}) p
WHERE has_any_column_privilege(p.oid, c.oid, 'SELECT') AND NOT pg_has_role(p.oid, c.relowner, 'MEMBER')
    AND NOT pg_has_role(p.oid, 'dbext_admin', 'MEMBER') AND p.rolname NOT IN ('dbext_reader', 'dbext_analyst')

-- name: open_source
-- warning
-- A tracked table that everybody may read needs no noise.
SELECT format('%I.%I', t.schema_name, t.table_name), 'PUBLIC may SELECT from it',
    format('REVOKE SELECT ON %I.%I FROM PUBLIC;', t.schema_name, t.table_name)
FROM dbext_private.tracked_table t JOIN pg_class c ON c.oid = t.relation
WHERE has_any_column_privilege('public', c.oid, 'SELECT')

-- name: private_grants
-- error, safe
-- Nobody but dbext_owner has business with the changelog, the exact sums and the noise.
SELECT format('dbext_private.%I', c.relname), format('%s has %s on it', w.name, a.privilege_type),
    format('REVOKE ALL ON dbext_private.%I FROM %s;', c.relname, w.name)
FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a
CROSS JOIN LATERAL (SELECT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS name) w
WHERE c.relnamespace = 'dbext_private'::regnamespace AND a.grantee <> c.relowner
UNION ALL
SELECT format('dbext_private.%I', c.relname), format('%s has %s on column %I', w.name, a.privilege_type, b.attname),
    format('REVOKE ALL (%I) ON dbext_private.%I FROM %s;', b.attname, c.relname, w.name)
FROM pg_class c JOIN pg_attribute b ON b.attrelid = c.oid CROSS JOIN LATERAL aclexplode(b.attacl) a
CROSS JOIN LATERAL (SELECT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS name) w
WHERE c.relnamespace = 'dbext_private'::regnamespace AND a.grantee <> c.relowner

-- name: changed_grants
-- error, safe
-- A function or view of dbext that more people may use than its install script says gives them what only others should have.
SELECT pg_describe_object(m.classid, m.objid, 0), format('%s was granted %s on it', w.name, a.privilege_type),
    format('REVOKE ALL ON %s FROM %s;', CASE WHEN p.oid IS NULL THEN o.name ELSE 'ROUTINE ' || o.name END, w.name)
FROM ({members}) m
LEFT JOIN pg_proc p ON m.classid = 'pg_proc'::regclass AND p.oid = m.objid
LEFT JOIN pg_class c ON m.classid = 'pg_class'::regclass AND c.oid = m.objid
    AND c.relnamespace = 'dbext'::regnamespace
CROSS JOIN LATERAL (SELECT coalesce(p.oid::regprocedure::text, c.oid::regclass::text) AS name) o
CROSS JOIN LATERAL aclexplode(coalesce(p.proacl, c.relacl)) a
LEFT JOIN pg_init_privs i ON (i.classoid, i.objoid, i.objsubid) = (m.classid, m.objid, 0)
CROSS JOIN LATERAL (SELECT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS name) w
WHERE a.grantee <> coalesce(p.proowner, c.relowner) AND NOT EXISTS (SELECT FROM aclexplode(i.initprivs) b
    WHERE (b.grantee, b.privilege_type) = (a.grantee, a.privilege_type))

-- name: release_grants
-- warning, safe
-- A grant on a whole release table shows xmin and ctid, which count transactions and order rows: readers get its columns instead.
SELECT format('dp_release.%I', c.relname), format('%s has %s on the whole table', w.name, a.privilege_type),
    format('REVOKE ALL ON dp_release.%I FROM %s; GRANT SELECT (%s) ON dp_release.%1$I TO %2$s;', c.relname, w.name, (
        SELECT string_agg(quote_ident(b.attname), ', ' ORDER BY b.attnum) FROM pg_attribute b
        WHERE b.attrelid = c.oid AND b.attnum > 0 AND NOT b.attisdropped))
FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a
CROSS JOIN LATERAL (SELECT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS name) w
WHERE c.relnamespace = 'dp_release'::regnamespace AND c.relkind IN ('r', 'p') AND a.grantee <> c.relowner

-- name: foreign_objects
-- error
-- A function whose name is ours, elsewhere on somebody's path, is called in place of ours, with that person's rights.
SELECT p.oid::regprocedure::text, format('it is not part of dbext; its owner is %I', r.rolname),
    format('DROP ROUTINE %s;', p.oid::regprocedure)
FROM pg_proc p JOIN pg_roles r ON r.oid = p.proowner
WHERE p.proname IN (SELECT q.proname FROM pg_proc q JOIN ({members}) m ON m.objid = q.oid AND q.proname ~ '^dp_')
    AND NOT EXISTS (SELECT FROM ({members}) m WHERE m.classid = 'pg_proc'::regclass AND m.objid = p.oid)

-- name: schema_owner
-- note
-- Whoever may create objects in the schema of dbext's functions can put others of the same names beside them. (Dropping the schema takes a superuser.)
SELECT n.nspname, CASE WHEN has_schema_privilege('public', n.oid, 'CREATE') THEN 'everybody may create objects in it'
        ELSE format('its owner, %I, is no superuser', r.rolname) END,
    CASE WHEN has_schema_privilege('public', n.oid, 'CREATE') THEN format('REVOKE CREATE ON SCHEMA %I FROM PUBLIC;', n.nspname)
        ELSE format('ALTER SCHEMA %I OWNER TO %I;', n.nspname, current_user) END
FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace JOIN pg_roles r ON r.oid = n.nspowner
JOIN pg_database d ON d.datname = current_database()
WHERE e.extname = 'dbext' AND (has_schema_privilege('public', n.oid, 'CREATE') OR NOT (r.rolsuper
    OR r.rolname = 'pg_database_owner' AND (SELECT o.rolsuper FROM pg_roles o WHERE o.oid = d.datdba)))

-- name: lost_grantees
-- note, safe
-- Grants and allowances are kept by name: a new role of that name would have them.
SELECT g.role_name, 'it has a grant or an allowance, and does not exist',
    format('SELECT {api}.%s(%L, %L%s);', g.call, format('%I.%I', t.schema_name, t.table_name), g.role_name, g.rest)
FROM (SELECT 'dp_revoke' AS call, '' AS rest, x.table_id, x.role_name FROM dbext_private.table_grant x
    UNION ALL SELECT 'dp_set_allowance', ', NULL', y.table_id, y.role_name FROM dbext_private.allowance y) g
JOIN dbext_private.tracked_table t USING (table_id)
WHERE NOT EXISTS (SELECT FROM pg_roles r WHERE r.rolname = g.role_name)
    AND (g.call <> 'dp_set_allowance' OR NOT EXISTS (SELECT FROM dbext_private.role_identity i
        JOIN dbext_private.role_identity k USING (first_name) JOIN pg_roles r ON r.oid = k.role_oid OR r.rolname = k.role_name WHERE i.role_name = g.role_name))

-- name: statement_statistics
-- warning, safe
-- pg_stat_statements shows everybody the number of rows of every statement, those inside capture and publication included.
SELECT c.oid::regclass::text, 'everybody may read it',
    format('REVOKE SELECT ON %s FROM PUBLIC; REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC;', c.oid::regclass, (
        SELECT string_agg(p.oid::regprocedure::text, ', ') FROM pg_proc p
        WHERE p.pronamespace = c.relnamespace AND p.proname IN ('pg_stat_statements', 'pg_stat_statements_info')))
FROM pg_class c JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'
JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'pg_stat_statements'
WHERE c.relkind = 'v' AND has_table_privilege('public', c.oid, 'SELECT')

-- name: role_makers
-- warning
-- Before PostgreSQL 16 whoever may make roles may grant himself any role that is no superuser, dbext_owner included.
SELECT r.rolname, 'it may make roles, and so act as dbext_owner', format('ALTER ROLE %I NOCREATEROLE;', r.rolname)
FROM pg_roles r WHERE r.rolcreaterole AND NOT r.rolsuper AND current_setting('server_version_num')::integer < 160000
