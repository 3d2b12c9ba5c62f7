-- Settings of the server around the database.

-- name: durability
-- error
-- A crash could take back charges whose answers were read, and noise would be drawn a second time for what is out already.
SELECT s.name, format('it is %s', s.setting), format('ALTER SYSTEM SET %I = on; SELECT pg_reload_conf();', s.name)
FROM pg_settings s WHERE s.name IN ('fsync', 'full_page_writes') AND s.setting = 'off'

-- name: logged_statements
-- warning
-- Statements in the server's log hold what applications write into tracked tables: whoever reads the log, or its copies, reads data.
SELECT s.name, format('it is %s', s.setting), format('ALTER DATABASE %I SET %s = %L;', current_database(), s.name, w.quiet)
FROM pg_settings s JOIN (VALUES ('log_statement', 'none'), ('log_min_duration_statement', '-1'), ('log_min_duration_sample', '-1'),
    ('log_transaction_sample_rate', '0'), ('log_parameter_max_length_on_error', '0'), ('debug_print_parse', 'off'),
    ('debug_print_rewritten', 'off'), ('debug_print_plan', 'off')) AS w(name, quiet) USING (name)
WHERE s.setting <> w.quiet
UNION ALL
SELECT split_part(c, '=', 1) || coalesce(' of ' || r.rolname, ''), 'it is set for a role: ' || c,
    format('ALTER ROLE %I%s RESET %s;', r.rolname,
        CASE WHEN d.datname IS NULL THEN '' ELSE format(' IN DATABASE %I', d.datname) END, split_part(c, '=', 1))
FROM pg_db_role_setting x JOIN pg_roles r ON r.oid = x.setrole LEFT JOIN pg_database d ON d.oid = x.setdatabase
CROSS JOIN LATERAL unnest(x.setconfig) AS c
WHERE (d.datname IS NULL OR d.datname = current_database())
    AND split_part(c, '=', 1) IN ('log_statement', 'log_min_duration_statement', 'log_min_duration_sample', 'log_transaction_sample_rate',
        'debug_print_parse', 'debug_print_rewritten', 'debug_print_plan', 'auto_explain.log_min_duration')
    AND split_part(c, '=', 2) NOT IN ('none', '-1', '0', 'off')

-- name: logged_plans
-- warning
-- auto_explain writes exact row counts of statements into the log, those inside capture and publication if it logs nested ones.
SELECT s.name, format('it is %s', s.setting), format('ALTER DATABASE %I SET %s = -1;', current_database(), s.name)
FROM pg_settings s WHERE s.name = 'auto_explain.log_min_duration' AND s.setting <> '-1'

-- name: function_tracking
-- warning
-- track_functions counts the calls of capture functions, which pg_stat_user_functions shows.
SELECT s.name, format('it is %s', s.setting), format('ALTER DATABASE %I SET track_functions = none;', current_database())
FROM pg_settings s WHERE s.name = 'track_functions' AND s.setting <> 'none'

-- name: replica_sessions
-- error, safe
-- Sessions that call themselves replicas fire no ordinary triggers; those that follow schema changes are ordinary.
SELECT coalesce(r.rolname, d.datname, 'session_replication_role'), c,
    format(CASE WHEN r.rolname IS NOT NULL THEN 'ALTER ROLE %I RESET session_replication_role;' ELSE 'ALTER DATABASE %I RESET session_replication_role;' END,
        coalesce(r.rolname, d.datname))
FROM pg_db_role_setting x LEFT JOIN pg_roles r ON r.oid = x.setrole LEFT JOIN pg_database d ON d.oid = x.setdatabase
CROSS JOIN LATERAL unnest(x.setconfig) AS c
WHERE (d.datname IS NULL OR d.datname = current_database()) AND c ~ '^session_replication_role=' AND c <> 'session_replication_role=origin'
