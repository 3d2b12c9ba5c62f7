-- What can be tracked, read from the system catalogs alone. Every refusal names the table and what to do, never a value in it.

CREATE FUNCTION dbext_private.base_type(type_id oid) RETURNS oid
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (
        WITH RECURSIVE layer (type_id, base_id) AS (
            SELECT t.oid, t.typbasetype FROM pg_type AS t WHERE t.oid = base_type.type_id
            UNION ALL
            SELECT t.oid, t.typbasetype FROM layer AS l JOIN pg_type AS t ON t.oid = l.base_id
        )
        SELECT l.type_id FROM layer AS l WHERE l.base_id = 0
    );
END $$;
COMMENT ON FUNCTION dbext_private.base_type(oid) IS 'The type under any number of domains: a log column must take NULL and whatever a domain once allowed.';

CREATE FUNCTION dbext_private.compares_by_value(type_id oid) RETURNS boolean
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (
        SELECT EXISTS (
            SELECT FROM pg_type AS t JOIN pg_opclass AS c ON c.opcintype = CASE WHEN t.typtype = 'e' THEN 'anyenum'::regtype ELSE t.oid END
            JOIN pg_am AS m ON m.oid = c.opcmethod
            WHERE t.oid = compares_by_value.type_id AND m.amname = 'btree' AND c.opcdefault
                AND (t.typtype = 'e' OR t.typtype = 'b' AND t.typelem = 0 AND t.typnamespace = 'pg_catalog'::regnamespace)
        ) OR compares_by_value.type_id = 'varchar'::regtype
    );
END $$;
COMMENT ON FUNCTION dbext_private.compares_by_value(oid) IS
    'Whether IS DISTINCT FROM works for a type under search_path pg_catalog (built-in scalars and enums). Others (json, arrays, types of extensions) are compared byte by byte.';

CREATE FUNCTION dbext_private.differs(type_id oid, before text, after text, never_null boolean) RETURNS text
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (
        SELECT format(CASE WHEN dbext_private.compares_by_value(type_id) AND never_null THEN '(%1$s OPERATOR(pg_catalog.=) %2$s) IS NOT TRUE'
            WHEN dbext_private.compares_by_value(type_id) THEN '((%1$s OPERATOR(pg_catalog.=) %2$s) IS NOT TRUE AND (%1$s IS NOT NULL OR %2$s IS NOT NULL))'
            ELSE 'ROW(%1$s)::pg_catalog.record OPERATOR(pg_catalog.*<>) ROW(%2$s)::pg_catalog.record' END, before, after)
    );
END $$;
COMMENT ON FUNCTION dbext_private.differs(oid, text, text, boolean) IS
    'SQL that says whether two images of a column differ, under any search_path; it runs no function of any user. Of a column that is never NULL, two NULLs may count as different.';

CREATE FUNCTION dbext_private.refuse(sentence text, hint text DEFAULT NULL, state text DEFAULT 'DP003') RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF hint IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = state, MESSAGE = sentence;
    END IF;
    RAISE EXCEPTION USING ERRCODE = state, MESSAGE = sentence, HINT = hint;
END $$;
COMMENT ON FUNCTION dbext_private.refuse(text, text, text) IS 'Raises a refusal (by default DP003, not supported).';

CREATE FUNCTION dbext_private.partition_tree(root oid) RETURNS TABLE (relation oid, kind "char")
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- From pg_inherits, which also has partitions that DETACH ... CONCURRENTLY has not let go of yet.
    RETURN QUERY WITH RECURSIVE tree (relation, kind) AS (
        SELECT c.oid, c.relkind FROM pg_class AS c WHERE c.oid = root
        UNION ALL
        SELECT c.oid, c.relkind FROM tree AS t JOIN pg_inherits AS i ON i.inhparent = t.relation AND t.kind = 'p' JOIN pg_class AS c ON c.oid = i.inhrelid
    )
    SELECT t.relation, t.kind FROM tree AS t;
END $$;
COMMENT ON FUNCTION dbext_private.partition_tree(oid) IS 'A table and, if it is partitioned, its partitions of all levels.';

CREATE FUNCTION dbext_private.fed_by_subscription(relation oid) RETURNS boolean
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM pg_subscription_rel AS s JOIN dbext_private.partition_tree(fed_by_subscription.relation) AS t ON t.relation = s.srrelid)
$$;
COMMENT ON FUNCTION dbext_private.fed_by_subscription(oid) IS 'Whether logical replication writes to a table or a partition of it.';

CREATE FUNCTION dbext_private.untrackable(relation oid) RETURNS TABLE (reason text, instead text)
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT r.reason, r.instead FROM pg_class AS c CROSS JOIN LATERAL (VALUES
        (c.relkind IN ('v', 'm'), 'it is a view', 'Track the tables that it is made from.'),
        (c.relkind = 'f', 'it is a foreign table', 'Track it where its rows are, or track a local copy.'),
        (c.relkind NOT IN ('r', 'p'), 'it is not a table', 'Only ordinary and partitioned tables are tracked.'),
        (c.relispartition, 'it is a partition', 'Track the partitioned table that it belongs to.'),
        (c.relpersistence = 'u', 'it is unlogged, so a crash could empty it unseen', 'ALTER TABLE ... SET LOGGED first.'),
        (c.relpersistence = 't', 'it is temporary', 'Track a permanent table.'),
        (c.relkind = 'r' AND EXISTS (SELECT FROM pg_inherits AS i WHERE i.inhrelid = c.oid),
            'it is part of an inheritance tree', 'ALTER TABLE ... NO INHERIT first, or use declarative partitioning and track the partitioned table.'),
        (c.relkind = 'r' AND EXISTS (SELECT FROM pg_inherits AS i WHERE i.inhparent = c.oid),
            'it is part of an inheritance tree: tables inherit from it', 'Make them partitions of a partitioned table and track that, or let them no longer inherit.'),
        (c.relnamespace IN (SELECT n.oid FROM pg_namespace AS n WHERE n.nspname ~ '^pg_' OR n.nspname IN ('information_schema', 'dbext', 'dbext_private', 'dp_release')),
            'it is a system table', 'Track tables of your own.'),
        (EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'),
            'it belongs to an extension', 'Track a table of your own, to which a trigger copies its rows.'),
        (EXISTS (SELECT FROM dbext_private.partition_tree(c.oid) AS t WHERE t.kind = 'f'),
            'a partition of it is a foreign table', 'Detach that partition, or make it an ordinary table.'),
        (EXISTS (SELECT FROM dbext_private.partition_tree(c.oid) AS t JOIN pg_class AS p ON p.oid = t.relation WHERE p.relpersistence = 'u'),
            'a partition of it is unlogged, so a crash could empty it unseen', 'ALTER TABLE ... SET LOGGED on that partition first.')
    ) AS r (holds, reason, instead) WHERE c.oid = untrackable.relation AND r.holds LIMIT 1;
END $$;
COMMENT ON FUNCTION dbext_private.untrackable(oid) IS 'Why a relation cannot be tracked, and what to do instead; no row if it can.';

CREATE FUNCTION dbext_private.foreign_code(root oid, trusted name) RETURNS boolean
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- Whoever reads a table has the planner work out what is constant in its index expressions, partial indexes and extended statistics:
    -- that calls their functions with the rights of the reader.
    RETURN EXISTS (
        WITH read (class_id, object_id) AS (
            SELECT 'pg_class'::regclass, i.indexrelid FROM dbext_private.partition_tree(root) AS t JOIN pg_index AS i ON i.indrelid = t.relation
            UNION ALL
            SELECT 'pg_statistic_ext'::regclass, s.oid FROM dbext_private.partition_tree(root) AS t JOIN pg_statistic_ext AS s ON s.stxrelid = t.relation
        )
        SELECT FROM read AS x JOIN pg_depend AS d ON (d.classid, d.objid) = (x.class_id, x.object_id)
        LEFT JOIN pg_proc AS p ON d.refclassid = 'pg_proc'::regclass AND p.oid = d.refobjid
        LEFT JOIN pg_operator AS o ON d.refclassid = 'pg_operator'::regclass AND o.oid = d.refobjid
        LEFT JOIN pg_type AS y ON d.refclassid = 'pg_type'::regclass AND y.oid = d.refobjid AND y.typtype = 'd'
        JOIN pg_roles AS r ON r.oid = coalesce(p.proowner, o.oprowner, y.typowner)
        WHERE NOT r.rolsuper AND r.rolname <> trusted);
END $$;
COMMENT ON FUNCTION dbext_private.foreign_code(oid, name) IS
    'Whether reading a table or its partitions may call functions of somebody who is neither a superuser nor the role trusted.';

CREATE FUNCTION dbext_private.partition_columns(root oid) RETURNS smallint[]
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN ARRAY(SELECT DISTINCT own.attnum FROM dbext_private.partition_tree(root) AS t JOIN pg_partitioned_table AS p ON p.partrelid = t.relation
        JOIN pg_attribute AS a ON a.attrelid = t.relation AND a.attnum = ANY (p.partattrs::smallint[])
        JOIN pg_attribute AS own ON own.attrelid = root AND own.attname = a.attname AND NOT own.attisdropped);
END $$;
COMMENT ON FUNCTION dbext_private.partition_columns(oid) IS 'Attribute numbers of the columns by which a table is partitioned, on all levels.';

CREATE FUNCTION dbext_private.unit_index(relation oid, needed smallint[], allowed smallint[]) RETURNS oid
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT i.indexrelid
    FROM pg_index AS i JOIN pg_class AS x ON x.oid = i.indexrelid JOIN pg_am AS m ON m.oid = x.relam
    CROSS JOIN LATERAL (SELECT array_agg(k.number ORDER BY k.number) AS columns FROM unnest(i.indkey::smallint[]) WITH ORDINALITY AS k (number, place)
        WHERE k.place <= i.indnkeyatts) AS keys
    WHERE i.indrelid = relation AND i.indisunique AND i.indimmediate AND i.indisvalid AND i.indisready AND i.indislive
        AND i.indpred IS NULL AND i.indexprs IS NULL AND m.amname = 'btree'
        -- A unique key of a partitioned table must hold the columns it is partitioned by; the unit need not.
        AND keys.columns @> needed AND needed <> '{}' AND allowed || dbext_private.partition_columns(relation) @> keys.columns
        AND NOT EXISTS (
            SELECT FROM unnest(i.indkey::smallint[], i.indcollation::oid[], i.indclass::oid[]) AS k (number, collation_id, class_id)
            JOIN pg_attribute AS a ON a.attrelid = relation AND a.attnum = k.number
            JOIN pg_opclass AS c ON c.oid = k.class_id
            WHERE k.collation_id <> a.attcollation OR NOT c.opcdefault)
    ORDER BY i.indisprimary DESC, i.indexrelid LIMIT 1
$$;
COMMENT ON FUNCTION dbext_private.unit_index(oid, smallint[], smallint[]) IS
    'A unique, immediate, complete btree index over at least and at most these columns (partition columns aside), under their own collation and default equality; NULL if none.';

CREATE FUNCTION dbext_private.unit_columns(relation oid, unit text[]) RETURNS smallint[]
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    numbers smallint[];
    unknown text;
BEGIN
    IF unit IS NULL THEN
        SELECT i.indkey::smallint[] INTO numbers FROM pg_index AS i WHERE i.indrelid = relation AND i.indisprimary;
        IF NOT FOUND THEN
            PERFORM dbext_private.refuse(format('table %s has no primary key', relation::regclass),
                'Add one, or name a NOT NULL unique key: dp_track(..., unit => ''{column}'').');
        END IF;
        RETURN numbers[0:(SELECT i.indnkeyatts - 1 FROM pg_index AS i WHERE i.indrelid = relation AND i.indisprimary)];
    END IF;
    numbers := dbext_private.column_numbers(relation, unit);
    SELECT a.attname INTO unknown FROM pg_attribute AS a WHERE a.attrelid = relation AND a.attnum = ANY (numbers) AND NOT a.attnotnull;
    IF FOUND THEN
        PERFORM dbext_private.refuse(format('unit column "%s" may be NULL', unknown), 'The privacy unit must be a NOT NULL unique key.');
    END IF;
    RETURN numbers;
END $$;
COMMENT ON FUNCTION dbext_private.unit_columns(oid, text[]) IS 'Attribute numbers of the privacy unit: the columns named, or the primary key.';

CREATE FUNCTION dbext_private.column_numbers(relation oid, names text[]) RETURNS smallint[]
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    numbers smallint[];
    unknown text;
BEGIN
    SELECT wanted.name INTO unknown FROM unnest(names) AS wanted (name)
    WHERE NOT EXISTS (SELECT FROM pg_attribute AS a WHERE a.attrelid = relation AND a.attname = wanted.name AND a.attnum > 0 AND NOT a.attisdropped);
    IF FOUND THEN
        PERFORM dbext_private.refuse(format('table %s has no column "%s"', relation::regclass, unknown), NULL, 'DP002');
    END IF;
    SELECT array_agg(DISTINCT a.attnum) INTO numbers FROM pg_attribute AS a
    WHERE a.attrelid = relation AND a.attname = ANY (names) AND a.attnum > 0 AND NOT a.attisdropped;
    IF numbers IS NULL THEN
        PERFORM dbext_private.refuse('the list of columns is empty', NULL, 'DP001');
    END IF;
    RETURN numbers;
END $$;
COMMENT ON FUNCTION dbext_private.column_numbers(oid, text[]) IS 'Attribute numbers of named columns; an unknown name is refused.';

-- In PL/pgSQL, which keeps plans for the session: a seal asks this for every column.
CREATE FUNCTION dbext_private.find_operator(type_id oid, strategy smallint) RETURNS oid
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (
        WITH indexed (type_id, preference) AS (
            SELECT find_operator.type_id, 0
            UNION ALL
            SELECT CASE WHEN t.typtype = 'e' THEN 'anyenum' WHEN t.typtype = 'r' THEN 'anyrange' WHEN t.typtype = 'm' THEN 'anymultirange'
                WHEN t.typtype = 'c' THEN 'record' WHEN t.typsubscript = 'array_subscript_handler'::regproc THEN 'anyarray' END::regtype, 1
            FROM pg_type AS t WHERE t.oid = find_operator.type_id
            UNION ALL
            SELECT c.casttarget, 2 FROM pg_cast AS c WHERE c.castsource = find_operator.type_id AND c.castmethod = 'b' AND c.castcontext = 'i'
        )
        SELECT o.oid
        FROM indexed AS i JOIN pg_opclass AS c ON c.opcintype = i.type_id AND c.opcdefault
        JOIN pg_am AS m ON m.oid = c.opcmethod AND m.amname = 'btree'
        JOIN pg_amop AS a ON a.amopfamily = c.opcfamily AND a.amoplefttype = c.opcintype AND a.amoprighttype = c.opcintype
            AND a.amopstrategy = find_operator.strategy
        JOIN pg_operator AS o ON o.oid = a.amopopr
        WHERE find_operator.strategy <> 3 OR o.oprcanmerge OR o.oprcanhash
        ORDER BY i.preference, c.oid LIMIT 1
    );
END $$;
COMMENT ON FUNCTION dbext_private.find_operator(oid, smallint) IS 'An operator of a type''s default btree class (strategy 1: <, 3: =), or NULL.';

CREATE FUNCTION dbext_private.btree_operator(type_id oid, strategy smallint) RETURNS text
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (SELECT format('OPERATOR(%I.%s)', n.nspname, o.oprname) FROM pg_operator AS o JOIN pg_namespace AS n ON n.oid = o.oprnamespace
        WHERE o.oid = dbext_private.find_operator(type_id, strategy));
END $$;
COMMENT ON FUNCTION dbext_private.btree_operator(oid, smallint) IS
    'An operator of a type''s default btree class as SQL text (strategy 1: <, 3: =), or NULL.';

CREATE FUNCTION dbext_private.hold_types(relation oid) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    types oid[];
    operators oid[];
BEGIN
    -- Those of pg_catalog are nobody's to rename. Where nothing can be written, nothing is noised either, and rows cannot be locked.
    SELECT array_agg(DISTINCT y.oid) INTO types FROM pg_attribute AS a CROSS JOIN LATERAL (VALUES (dbext_private.base_type(a.atttypid))) AS b(oid)
    JOIN pg_type AS d ON d.oid = b.oid JOIN pg_type AS y ON y.oid IN (a.atttypid, d.oid, d.typelem)
    WHERE a.attrelid = relation AND a.attnum > 0 AND NOT a.attisdropped AND y.typnamespace <> 'pg_catalog'::regnamespace;
    IF types IS NULL OR current_setting('transaction_read_only')::boolean THEN
        RETURN;
    END IF;
    SELECT array_agg(DISTINCT o.oid) INTO operators FROM unnest(types) AS t(oid) CROSS JOIN (VALUES (1::smallint), (3::smallint)) AS s(strategy)
    JOIN pg_operator AS o ON o.oid = dbext_private.find_operator(t.oid, s.strategy) AND o.oprnamespace <> 'pg_catalog'::regnamespace;
    PERFORM FROM pg_type AS t WHERE t.oid = ANY (types) FOR KEY SHARE NOWAIT;
    PERFORM FROM pg_operator AS o WHERE o.oid = ANY (operators) FOR KEY SHARE NOWAIT;
    PERFORM FROM pg_namespace AS n WHERE n.oid = ANY (ARRAY(SELECT t.typnamespace FROM pg_type AS t WHERE t.oid = ANY (types)
        UNION ALL SELECT o.oprnamespace FROM pg_operator AS o WHERE o.oid = ANY (operators))) FOR KEY SHARE NOWAIT;
EXCEPTION WHEN lock_not_available THEN
    PERFORM dbext_private.refuse(format('a type or operator of %s is being renamed or moved by another transaction', relation::regclass), 'Try again.', 'DP031');
END $$;
COMMENT ON FUNCTION dbext_private.hold_types(oid) IS
    'Keeps the types of a relation''s columns, their operators and the schemas of both from being renamed or moved until this transaction ends: statements name them.';

CREATE FUNCTION dbext_private.key_operator(type_id oid) RETURNS text
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN dbext_private.btree_operator(type_id, 3::smallint);
END $$;
COMMENT ON FUNCTION dbext_private.key_operator(oid) IS 'The equality under which a column of a type is a unique key, fit for a FULL JOIN; NULL if there is none.';

CREATE FUNCTION dbext_private.refuse_unusable_unit(relation oid, unit smallint[], row_key smallint[]) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    unit_text text;
    unequal text;
BEGIN
    SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum),
        min(a.attname) FILTER (WHERE dbext_private.key_operator(dbext_private.base_type(a.atttypid)) IS NULL)
    INTO unit_text, unequal FROM pg_attribute AS a WHERE a.attrelid = relation AND a.attnum = ANY (unit || row_key);
    IF unequal IS NOT NULL THEN
        PERFORM dbext_private.refuse(format('key column "%s" is of a type without default btree equality', unequal));
    ELSIF row_key = '{}' AND dbext_private.unit_index(relation, unit, unit) IS NULL THEN
        PERFORM dbext_private.refuse(format('(%s) is not a unique key of table %s that dbext can rely on', unit_text, relation::regclass),
            'It takes a valid unique index over exactly these columns, with default equality and collation, not partial and not deferrable. '
            'If several rows may belong to one person, say how many of them count: rows_per_unit => 10.');
    ELSIF row_key <> '{}' AND dbext_private.unit_index(relation, row_key, unit || row_key) IS NULL THEN
        PERFORM dbext_private.refuse(format('the primary key of table %s is none that dbext can rely on', relation::regclass),
            'It tells the rows of a unit apart: not deferrable, with default equality and collation.');
    END IF;
END $$;
COMMENT ON FUNCTION dbext_private.refuse_unusable_unit(oid, smallint[], smallint[]) IS 'Refuses a privacy unit that no usable unique index enforces.';

CREATE FUNCTION dbext_private.refuse_too_wide(relation oid, unit smallint[], numbers smallint[]) RETURNS void
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    widest integer;
    columns integer;
    fixed record;
BEGIN
    SELECT a.attname, y.typname INTO fixed FROM pg_attribute AS a JOIN pg_type AS y ON y.oid = a.atttypid
    WHERE a.attrelid = relation AND a.attnum = ANY (unit || numbers) AND y.typlen = -1 AND y.typstorage = 'p' LIMIT 1;
    IF FOUND THEN
        PERFORM dbext_private.refuse(format('column "%s" of table %s is of type %s, whose values cannot be moved out of their row: two of one entry might not fit into one',
            fixed.attname, relation::regclass, fixed.typname), 'Record only what statistics are about: dp_track(..., columns => ''{column, column}'').');
    END IF;
    -- A value of varying length is moved out of its row from 24 bytes on; the other figures are columns of our own, row header and NULL bits.
    SELECT sum((CASE WHEN y.typlen > 0 THEN y.typlen + 7 & -8 ELSE 24 END) * CASE WHEN a.attnum = ANY (unit) THEN 1 ELSE 2 END) + 48 + 32 + count(*) / 4,
        count(*) INTO widest, columns
    FROM pg_attribute AS a JOIN pg_type AS y ON y.oid = a.atttypid WHERE a.attrelid = relation AND a.attnum = ANY (unit || numbers);
    IF columns > 500 OR widest > current_setting('block_size')::integer - 32 THEN
        PERFORM dbext_private.refuse(format('table %s is too wide: a mutation''s images before and after must fit one row of the changelog', relation::regclass),
            'Record only what statistics are about: dp_track(..., columns => ''{column, column}'').');
    END IF;
END $$;
COMMENT ON FUNCTION dbext_private.refuse_too_wide(oid, smallint[], smallint[]) IS
    'Refuses tables of which some mutation could not be recorded or sealed: two images of every column in one row, and never more than 500 columns.';

CREATE FUNCTION dbext_private.refuse_unreachable_types(relation oid, numbers smallint[]) RETURNS void
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    place text;
BEGIN
    SELECT n.nspname INTO place FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = dbext_private.base_type(a.atttypid)
    LEFT JOIN pg_collation AS c ON c.oid = a.attcollation
    JOIN pg_namespace AS n ON n.oid IN (t.typnamespace, c.collnamespace)
    WHERE a.attrelid = relation AND a.attnum = ANY (numbers) AND NOT has_schema_privilege('dbext_owner', n.oid, 'USAGE')
    LIMIT 1;
    IF FOUND THEN
        PERFORM dbext_private.refuse(format('a tracked column has a type or collation in schema "%s", which dbext may not use', place),
            format('GRANT USAGE ON SCHEMA %I TO dbext_owner', place), 'DP005');
    END IF;
END $$;
COMMENT ON FUNCTION dbext_private.refuse_unreachable_types(oid, smallint[]) IS 'Refuses columns whose type lives in a schema that dbext_owner may not use.';

CREATE FUNCTION dbext_private.refuse_untrackable(relation oid) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found record;
BEGIN
    SELECT u.reason, u.instead INTO found FROM dbext_private.untrackable(relation) AS u;
    IF relation IS NULL OR NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = relation) THEN
        PERFORM dbext_private.refuse('there is no such table', NULL, 'DP002');
    ELSIF found.reason IS NOT NULL THEN
        PERFORM dbext_private.refuse(format('%s cannot be tracked: %s', relation::regclass, found.reason), found.instead);
    END IF;
END $$;
COMMENT ON FUNCTION dbext_private.refuse_untrackable(oid) IS 'Refuses relations whose mutations triggers cannot see in full.';

CREATE FUNCTION dbext_private.tick_kind_and_size(tick interval, OUT kind text, OUT size bigint)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    months bigint := extract(year FROM tick) * 12 + extract(month FROM tick);
    days bigint := extract(day FROM tick);
    microseconds bigint := (extract(hour FROM tick) * 3600 + extract(minute FROM tick) * 60 + extract(second FROM tick)) * 1000000;
BEGIN
    IF (months <> 0)::integer + (days <> 0)::integer + (microseconds <> 0)::integer IS DISTINCT FROM 1 THEN
        PERFORM dbext_private.refuse('a tick is a number of months, of days, or of hours, minutes and seconds: one of them, not zero and not a mixture',
            'Examples: ''1 day'', ''1 month'', ''15 minutes''.', 'DP001');
    ELSIF months < 0 OR days < 0 OR microseconds < 0 OR months > 1200 OR days > 36525 OR microseconds > 3155760000000000 THEN
        PERFORM dbext_private.refuse('a tick must be positive and at most a century', NULL, 'DP001');
    ELSIF microseconds % 1000000 <> 0 THEN
        PERFORM dbext_private.refuse('a tick must be a whole number of seconds', NULL, 'DP001');
    END IF;
    SELECT k.kind, k.size INTO kind, size
    FROM (VALUES ('month', months), ('day', days), ('fixed', microseconds)) AS k (kind, size) WHERE k.size <> 0;
END $$;
COMMENT ON FUNCTION dbext_private.tick_kind_and_size(interval) IS 'Kind (month, day, fixed) and size of a tick, or a refusal.';

CREATE FUNCTION dbext_private.zone_name(zone text) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    known text;
BEGIN
    SELECT z.name INTO known FROM pg_timezone_names AS z WHERE lower(z.name) = lower(zone) ORDER BY z.name = zone DESC LIMIT 1;
    IF NOT FOUND THEN
        PERFORM dbext_private.refuse(format('unknown time zone "%s"', zone), 'Use a name of pg_timezone_names, for example ''Asia/Taipei'' or ''UTC''.', 'DP001');
    END IF;
    RETURN known;
END $$;
COMMENT ON FUNCTION dbext_private.zone_name(text) IS 'The time zone''s own spelling of its name, or a refusal: abbreviations and offsets have no calendar.';
