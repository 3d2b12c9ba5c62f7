-- What PostgreSQL itself shows to a reader or an analyst of the same database: every query here runs with their rights.

-- name: row_counts
-- warning, safe
-- The cumulative statistics of a table count its inserts, updates and deletes exactly, and anybody may read them. Or let readers have a database or server of their own: dp_publish_to.
-- closes: ^pg_stat_get_((xact_)?(tuples_|numscans|blocks_)|live_tuples|dead_tuples|mod_since|ins_since|lastscan|last_(auto)?(vacuum|analyze)|(auto)?(vacuum|analyze)_count|total_)
SELECT 'pg_stat_all_tables', format('exact counts of changes to %s tables of dbext_private can be read', count(*)), NULL
FROM pg_stat_all_tables s
WHERE s.schemaname = 'dbext_private' AND s.relname ~ '^(log|change|admission|deferred|row)_[0-9]+$' AND s.n_tup_ins > 0 HAVING count(*) > 0

-- name: database_statistics
-- warning, safe
-- pg_stat_database counts the rows that this database inserted, updated, deleted and returned. Or let readers have a database or server of their own: dp_publish_to.
-- closes: ^pg_stat_get_db_
SELECT 'pg_stat_database', 'exact counts of rows written in this database can be read', NULL
FROM pg_stat_database d WHERE d.datname = current_database() AND d.tup_inserted >= 0

-- name: function_statistics
-- warning, safe
-- With track_functions on, calls of capture functions are counted: one for each statement that changed a tracked table.
-- closes: ^pg_stat_get_(xact_)?function_
SELECT 'pg_stat_user_functions', format('calls of %s functions of dbext_private are counted for all to see', count(*)), NULL
FROM pg_stat_user_functions f WHERE f.schemaname = 'dbext_private' HAVING count(*) > 0

-- name: server_statistics
-- warning, safe
-- Counters of the write-ahead log and of input and output grow with every change of a tracked table. Or let readers have a database or server of their own: dp_publish_to.
-- closes: ^pg_stat_get_(wal|io|backend_io|backend_wal|bgwriter|checkpointer|buf_|slru|archiver|bgwriter_|checkpointer_)
SELECT 'pg_stat_wal', 'counts of log records and bytes can be read', NULL FROM pg_stat_wal w WHERE w.wal_records >= 0

-- name: sizes
-- warning, safe
-- The size of a table tells how many rows it has to within a page. Or let readers have a database or server of their own: dp_publish_to.
-- closes: ^pg_(relation|total_relation|table|indexes|database|tablespace)_size$
SELECT 'pg_relation_size', format('sizes of %s tables of dbext_private can be read', count(*)), NULL
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'dbext_private' AND c.relkind = 'r' AND pg_relation_size(c.oid) > 0 HAVING count(*) > 0

-- name: log_position
-- warning, safe
-- The position in the write-ahead log moves with every change of a tracked table, by an amount that shows how many. Or let readers have a database or server of their own: dp_publish_to.
-- closes: ^pg_(current_wal_(insert_|flush_)?lsn|last_wal_(receive|replay)_lsn|walfile_name(_offset)?|control_(checkpoint|system|init|recovery))$
SELECT 'pg_current_wal_lsn', 'the position in the write-ahead log can be read', NULL WHERE pg_current_wal_insert_lsn() IS NOT NULL

-- name: estimates
-- warning
-- After ANALYZE or VACUUM pg_class holds the number of rows of a table, often exactly. Closing it keeps DuckDB's ATTACH and some of JDBC's metadata from working. Or let readers have a database or server of their own: dp_publish_to.
SELECT 'pg_class.reltuples', format('estimated row counts of %s tables of dbext_private can be read', count(*)), (
    SELECT format('REVOKE SELECT ON pg_catalog.pg_class FROM PUBLIC; GRANT SELECT (%s) ON pg_catalog.pg_class TO PUBLIC;',
        string_agg(a.attname, ', ' ORDER BY a.attnum))
    FROM pg_attribute a WHERE a.attrelid = 'pg_class'::regclass
        AND a.attnum > 0 AND a.attname NOT IN ('reltuples', 'relpages', 'relallvisible', 'relallfrozen'))
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'dbext_private' AND c.relkind = 'r' AND c.reltuples > 0 HAVING count(*) > 0

-- name: column_statistics
-- warning
-- pg_stats shows most frequent values, counts of distinct values and histograms of columns that a role may SELECT.
SELECT format('%I.%I', s.schemaname, s.tablename),
    'statistics of its columns can be read, as its rows can',
    format('REVOKE SELECT ON %I.%I FROM %I;', s.schemaname, s.tablename, current_user)
FROM pg_stats s JOIN dbext.tracked_table t ON t.table_name = format('%I.%I', s.schemaname, s.tablename)
GROUP BY s.schemaname, s.tablename

-- name: transaction_numbers
-- note
-- How many transactions there were can be told by anybody who may begin one, in every database of the server. Or let readers have a database or server of their own: dp_publish_to.
SELECT 'pg_current_snapshot', 'numbers of transactions can be read', NULL
WHERE pg_snapshot_xmax(pg_current_snapshot()) IS NOT NULL
