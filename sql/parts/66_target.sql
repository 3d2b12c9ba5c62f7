-- The release target: another database or server where release tables are written for readers who never come here. The target has a
-- name and no address: a worker knows how to connect (`dbext worker --release-dsn`), so that no password is kept in this database.

CREATE TABLE dbext_private.release_target (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    name     text NOT NULL
);
COMMENT ON TABLE dbext_private.release_target IS 'Where releases go that are declared from now on; empty: readers of this database see them.';

CREATE TABLE dbext_private.lineage (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    id       uuid NOT NULL
);
COMMENT ON TABLE dbext_private.lineage IS
    'By what name this ledger is known outside. Dumps, copies and restored backups keep it: they are the same ledger at another time.';

DO $$
BEGIN
    PERFORM pg_catalog.pg_extension_config_dump('dbext_private.release_target'::pg_catalog.regclass, '');
    PERFORM pg_catalog.pg_extension_config_dump('dbext_private.lineage'::pg_catalog.regclass, '');
END $$;

CREATE FUNCTION dp_publish_to(target text, release text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN dbext_private.call('publish_to', jsonb_build_object('target', target, 'release', release)) #>> '{}';
END $$;
COMMENT ON FUNCTION dp_publish_to(text, text) IS
    'Let the readers of another database, the release target, see a release (or, without a name, every release), and those of this one no more; NULL: here.';

CREATE FUNCTION dbext_private.own_lineage() RETURNS uuid
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM dbext_private.require_admin();
    INSERT INTO dbext_private.lineage (id) VALUES (gen_random_uuid()) ON CONFLICT DO NOTHING;
    RETURN (SELECT l.id FROM dbext_private.lineage AS l);
END $$;
COMMENT ON FUNCTION dbext_private.own_lineage() IS 'The name of this ledger, given when it is first asked for.';

CREATE FUNCTION dbext_private.targeted_releases() RETURNS jsonb
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET datestyle = 'ISO, YMD' AS $$
BEGIN
    PERFORM dbext_private.require_admin();
    RETURN (SELECT coalesce(jsonb_agg(jsonb_build_object(
            'release_id', r.release_id, 'name', r.name, 'target', r.target, 'dropped', r.state = 'dropped',
            'published', r.next_answer - 1, 'delivered', r.delivered,
            'identity', encode(sha256(convert_to(jsonb_build_array(r.release_id, r.name, r.declaration, r.created_at)::text, 'UTF8')), 'hex'))
        ORDER BY r.release_id), '[]')
        FROM dbext_private.release AS r);
END $$;
COMMENT ON FUNCTION dbext_private.targeted_releases() IS
    'Every release ever declared, with what a release target must know of it. The identity tells a release from another one that has its number in a restored database.';

CREATE FUNCTION dbext_private.release_structure(release_id integer) RETURNS jsonb
LANGUAGE plpgsql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
BEGIN
    PERFORM dbext_private.require_admin();
    RETURN (SELECT jsonb_object_agg(CASE WHEN c.relkind = 'v' THEN 'view' WHEN c.relname = r.name THEN 'table' ELSE 'reports' END, jsonb_build_object(
            'name', c.relname, 'comment', obj_description(c.oid, 'pg_class'), 'definition', CASE c.relkind WHEN 'v' THEN pg_get_viewdef(c.oid) END,
            'columns', (SELECT jsonb_agg(jsonb_build_object('name', a.attname, 'comment', col_description(c.oid, a.attnum),
                    'type', CASE WHEN y.typnamespace = 'pg_catalog'::regnamespace THEN format_type(y.oid, a.atttypmod) ELSE 'text' END) ORDER BY a.attnum)
                FROM pg_attribute AS a JOIN pg_type AS y ON y.oid = a.atttypid WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
            'key', (SELECT jsonb_agg(a.attname ORDER BY k.place)
                FROM pg_index AS i CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k(number, place)
                JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = k.number WHERE i.indrelid = c.oid AND i.indisprimary)))
        FROM dbext_private.release AS r JOIN pg_class AS c ON c.relnamespace = 'dp_release'::regnamespace
            AND ((c.relname = r.name AND c.relkind IN ('r', 'p')) OR (c.relname = r.name || '_rounded' AND c.relkind = 'v')
                OR (c.relname = r.name || '_reports' AND c.relkind = 'r' AND (r.plan ->> 'publish_reports')::boolean))
        WHERE r.release_id = release_structure.release_id);
END $$;
COMMENT ON FUNCTION dbext_private.release_structure(integer) IS
    'What a release table, its companion view and its table of reports are made of, for a database without this extension: types that only this one has become text.';

CREATE FUNCTION dbext_private.note_delivered(release_id integer, periods bigint) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM dbext_private.require_admin();
    UPDATE dbext_private.release AS r SET delivered = coalesce(periods, 0), target = CASE WHEN periods IS NOT NULL THEN r.target END
    WHERE r.release_id = note_delivered.release_id;
END $$;
COMMENT ON FUNCTION dbext_private.note_delivered(integer, bigint) IS
    'Notes what is committed at the release target; NULL: nothing more is to be done there about a release that was dropped.';
