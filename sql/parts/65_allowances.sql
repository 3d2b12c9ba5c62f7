-- Who may ask about which table without SELECT on it, and how much of the table's budget one role may take.

CREATE FUNCTION dbext_private.is_granted(table_id integer, role_name name, column_position integer) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM dbext_private.table_grant AS g JOIN pg_roles AS r ON r.rolname = g.role_name
        WHERE g.table_id = is_granted.table_id AND pg_has_role(is_granted.role_name, r.oid, 'USAGE')
            AND (is_granted.column_position IS NULL OR g.positions IS NULL OR is_granted.column_position = ANY (g.positions)))
$$;
COMMENT ON FUNCTION dbext_private.is_granted(integer, name, integer) IS
    'Whether dp_grant lets a role, by itself or as a member of another, ask about a column of a table, or (NULL) about the table at all.';

CREATE FUNCTION dp_grant(tbl regclass, role_name text, columns text[] DEFAULT NULL) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN dbext_private.call('grant', jsonb_build_object('tbl', tbl::oid::bigint, 'role_name', role_name, 'columns', columns)) #>> '{}';
END $$;
COMMENT ON FUNCTION dp_grant(regclass, text, text[]) IS
    'Let a role ask about a table, or about these columns only, without SELECT on it. Run by the table''s owner, a member of dbext_admin.';

CREATE FUNCTION dp_revoke(tbl regclass, role_name text) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN dbext_private.call('revoke', jsonb_build_object('tbl', tbl::oid::bigint, 'role_name', role_name)) #>> '{}';
END $$;
COMMENT ON FUNCTION dp_revoke(regclass, text) IS 'Take back what dp_grant gave a role on a table.';

CREATE FUNCTION dbext_private.names_of(role_name text) RETURNS text[]
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT ARRAY(SELECT names_of.role_name UNION SELECT i.role_name FROM dbext_private.role_identity AS i WHERE i.first_name IN (
        SELECT k.first_name FROM dbext_private.role_identity AS k
        WHERE k.role_name = names_of.role_name
            OR (k.role_oid = (SELECT r.oid FROM pg_roles AS r WHERE r.rolname = names_of.role_name) AND dbext_private.is_home())))
$$;
COMMENT ON FUNCTION dbext_private.names_of(text) IS 'A role''s name, with those under which it has spent before it was renamed.';

CREATE FUNCTION dp_set_allowance(tbl regclass, role_name text, epsilon numeric, key_delta numeric DEFAULT NULL) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN dbext_private.call('set_allowance', jsonb_build_object(
        'tbl', tbl::oid::bigint, 'role_name', role_name, 'epsilon', epsilon::text, 'key_delta', key_delta::text)) #>> '{}';
END $$;
COMMENT ON FUNCTION dp_set_allowance(regclass, text, numeric, numeric) IS
    'Set what an entry may lose to all that one role asks and declares, besides the budget, and what its keys taken from the data may cost; for dbext_analyst: to each analyst without an allowance of his own. NULL epsilon: no allowance.';

CREATE TYPE dbext_private.allowance_figures AS (
    table_id integer, role_name text, epsilon numeric, spent numeric, "left" numeric, key_delta numeric, key_delta_spent numeric);
COMMENT ON TYPE dbext_private.allowance_figures IS 'Figures of one allowance.';

CREATE FUNCTION dbext_private.allowance_figures() RETURNS SETOF dbext_private.allowance_figures
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT * FROM jsonb_populate_recordset(NULL::dbext_private.allowance_figures, dbext_private.call('allowance_status', '{}'));
END $$;
COMMENT ON FUNCTION dbext_private.allowance_figures() IS 'Allowances with what is spent of them: all to administrators, to others their own.';

CREATE FUNCTION dbext_private.visible_grants() RETURNS SETOF dbext_private.table_grant
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT g.* FROM dbext_private.table_grant AS g LEFT JOIN pg_roles AS r ON r.rolname = g.role_name
    WHERE dbext_private.is_admin(dbext_private.caller())
        OR dbext_private.is_admitted(dbext_private.caller()) AND coalesce(pg_has_role(dbext_private.caller(), r.oid, 'USAGE'), false)
$$;
COMMENT ON FUNCTION dbext_private.visible_grants() IS 'What dp_grant gave: all to administrators, to others what concerns them.';

CREATE VIEW dbext.allowance AS
SELECT pg_catalog.format('%I.%I', t.schema_name, t.table_name) AS table_name, a.role_name, a.epsilon, a.spent, a."left", a.key_delta, a.key_delta_spent
FROM dbext_private.allowance_figures() AS a
JOIN dbext_private.tracked_table AS t ON t.table_id OPERATOR(pg_catalog.=) a.table_id;
COMMENT ON VIEW dbext.allowance IS 'What roles may spend and have spent, by table: administrators see all, others their own.';
COMMENT ON COLUMN dbext.allowance.table_name IS 'The table';
COMMENT ON COLUMN dbext.allowance.role_name IS 'The role; dbext_analyst: each analyst without a row of his own';
COMMENT ON COLUMN dbext.allowance.epsilon IS 'What an entry may lose to all that it asks and declares';
COMMENT ON COLUMN dbext.allowance.spent IS 'What was spent or reserved';
COMMENT ON COLUMN dbext.allowance."left" IS 'What may still be asked for, if the budget has as much';
COMMENT ON COLUMN dbext.allowance.key_delta IS 'What of the budget''s key_delta its group keys taken from the data may cost';
COMMENT ON COLUMN dbext.allowance.key_delta_spent IS 'What they cost, rounded up';

CREATE VIEW dbext.table_grant AS
SELECT pg_catalog.format('%I.%I', t.schema_name, t.table_name) AS table_name, g.role_name,
       ARRAY(SELECT c.column_name FROM dbext_private.tracked_column AS c
             WHERE c.table_id OPERATOR(pg_catalog.=) g.table_id
                AND (g.positions IS NULL OR c."position" OPERATOR(pg_catalog.=) ANY (g.positions)) ORDER BY c."position") AS columns
FROM dbext_private.visible_grants() AS g
JOIN dbext_private.tracked_table AS t ON t.table_id OPERATOR(pg_catalog.=) g.table_id;
COMMENT ON VIEW dbext.table_grant IS 'Who may ask about which columns without SELECT on them: administrators see all, others what concerns them.';
COMMENT ON COLUMN dbext.table_grant.table_name IS 'The table';
COMMENT ON COLUMN dbext.table_grant.role_name IS 'The role, with its members';
COMMENT ON COLUMN dbext.table_grant.columns IS 'Columns it may name in predicates and groups';
