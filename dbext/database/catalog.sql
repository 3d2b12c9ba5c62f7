-- name: table
-- One tracked table with its last sealed tick.
SELECT t.table_id, t.schema_name, t.table_name, t.relation::bigint AS relation, t.budget_id, t.tick_kind, t.tick_size, t.time_zone, t.first_tick, t.forgotten_through, t.rows_per_unit,
       t.tracked, t.sealed_unconstrained, h.tick AS sealed_tick
FROM dbext_private.tracked_table AS t JOIN dbext_private.seal_head AS h USING (table_id)
WHERE t.table_id = $1::integer

-- name: by_relation
-- The number of the tracked table behind an OID or a name that regclass understands; a new table of an old name is another table.
SELECT c.oid::regclass::text AS name, t.table_id
FROM pg_class AS c LEFT JOIN dbext_private.tracked_table AS t ON t.relation = c.oid
WHERE c.oid = to_regclass($1::text) OR c.oid = CASE WHEN $1::text ~ '^[0-9]{1,10}$' THEN $1::text::bigint END

-- name: by_name
-- Tracked tables of a name (in a schema, or in any) that the caller may read, or ask about.
SELECT t.table_id, format('%I.%I', n.nspname, c.relname) AS name
FROM dbext_private.tracked_table AS t JOIN pg_class AS c ON c.oid = t.relation JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relname = $2::text AND ($1::text IS NULL OR n.nspname = $1::text)
    AND (has_any_column_privilege(dbext_private.caller(), c.oid, 'SELECT') AND has_schema_privilege(dbext_private.caller(), n.oid, 'USAGE')
        OR dbext_private.is_granted(t.table_id, dbext_private.caller(), NULL))
ORDER BY t.table_id

-- name: hold_types
-- Keep the names of the types, operators and schemas that statements over a table's columns name.
SELECT dbext_private.hold_types(to_regclass(format('dbext_private.log_%s', $1::integer)))

-- name: columns
-- Tracked columns with what the compiler must know of their types: kind, enum labels, and the operators of the default btree class.
SELECT c.column_name, c.position, format_type(y.oid, -1) AS type_name, c.is_unit, c.is_key, c.gone, t.rows_per_unit, y.typcategory AS category, y.typtype = 'e' AS is_enum,
       format('%I.%I', s.nspname, y.typname) AS literal_type, coalesce(k.collisdeterministic, true) AS deterministic,
       (SELECT coalesce(array_agg(e.enumlabel::text ORDER BY e.enumsortorder), '{}') FROM pg_enum AS e WHERE e.enumtypid = y.oid)::text[] AS labels,
       dbext_private.key_operator(y.oid) AS equal, dbext_private.btree_operator(y.oid, 1::smallint) AS less,
       dbext_private.compares_by_value(y.oid) AS by_value, coalesce(o.attnotnull, false) AS not_null
FROM dbext_private.tracked_column AS c JOIN pg_attribute AS a ON a.attrelid = format('dbext_private.log_%s', c.table_id)::regclass
    AND a.attname = format(CASE WHEN c.is_key THEN 'key_%s' ELSE 'new_%s' END, c.position)
JOIN pg_type AS y ON y.oid = a.atttypid JOIN pg_namespace AS s ON s.oid = y.typnamespace
LEFT JOIN pg_collation AS k ON k.oid = a.attcollation
LEFT JOIN dbext_private.tracked_table AS t ON t.table_id = c.table_id
LEFT JOIN pg_attribute AS o ON o.attrelid = t.relation AND o.attnum = c.attribute_number AND NOT o.attisdropped
WHERE c.table_id = $1::integer
ORDER BY c.position

-- name: entry_types
-- The entry types of a table in order of declaration.
SELECT e.type_no, e.name, e.applies_to::text AS applies_to, e.applies_to_text, e.max_mutations, e.active_within, e.at_limit,
       e.loosest_max_mutations, e.loosest_active_within
FROM dbext_private.entry_type AS e WHERE e.table_id = $1::integer ORDER BY e.type_no

-- name: protected_subject
-- What is protected, in words.
SELECT dbext_private.protected_subject($1::integer) AS subject
