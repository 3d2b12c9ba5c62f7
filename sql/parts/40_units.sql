-- Units of several rows: the privacy unit is not unique, and the primary key tells its rows apart. The changelog is by row; what is settled
-- of a unit is its first rows by primary key, at most rows_per_unit of them, so that no unit counts without limit. Which rows these are
-- depends on the unit's own rows alone.

CREATE FUNCTION dbext_private.row_key(relation oid, unit text[], unit_numbers smallint[], rows_per_unit integer) RETURNS smallint[]
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    numbers smallint[];
BEGIN
    IF rows_per_unit IS NULL THEN
        RETURN '{}';
    ELSIF rows_per_unit NOT BETWEEN 1 AND 1000 THEN
        PERFORM dbext_private.refuse('rows_per_unit must lie between 1 and 1000', 'It is how many rows of each unit count, the first by primary key.', 'DP001');
    ELSIF unit IS NULL THEN
        PERFORM dbext_private.refuse('rows_per_unit is for a unit of several rows, and no unit is named', 'Add the columns that they share: unit => ''{patient_id}''.', 'DP001');
    END IF;
    SELECT i.indkey::smallint[] INTO numbers FROM pg_index AS i WHERE i.indrelid = relation AND i.indisprimary;
    IF NOT FOUND THEN
        PERFORM dbext_private.refuse(format('table %s has no primary key', relation::regclass), 'It takes one to tell the rows of a unit apart.');
    ELSIF unit_numbers @> numbers THEN
        PERFORM dbext_private.refuse(format('every unit of table %s is one row: it holds the whole primary key', relation::regclass),
            'Leave rows_per_unit out, or name as unit what several rows share.', 'DP001');
    END IF;
    RETURN ARRAY(SELECT n FROM unnest(numbers) AS n WHERE n <> ALL (unit_numbers));
END $$;
COMMENT ON FUNCTION dbext_private.row_key(oid, text[], smallint[], integer) IS
    'The columns of the primary key that tell rows of a unit apart; none if the unit is one row.';

CREATE FUNCTION dbext_private.refuse_unfit_rows(relation oid, unit smallint[], numbers smallint[], rows_per_unit integer) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    unfit record;
    columns bigint;
BEGIN
    IF rows_per_unit IS NULL THEN
        RETURN;
    END IF;
    -- Values stand in arrays: their size must have a limit, whatever they are (texts and numerics are cut by length), and so must their number.
    SELECT a.attname, format_type(y.oid, -1) AS type_name INTO unfit FROM pg_attribute AS a JOIN pg_type AS y ON y.oid = dbext_private.base_type(a.atttypid)
    WHERE a.attrelid = relation AND a.attnum = ANY (numbers) AND a.attnum <> ALL (unit)
        AND (NOT dbext_private.compares_by_value(y.oid) OR y.typlen < 0 AND y.typcategory NOT IN ('S', 'N', 'I')) LIMIT 1;
    IF FOUND THEN
        PERFORM dbext_private.refuse(format('column "%s" is of type %s, of which no bounded number of values fits an image of several rows', unfit.attname, unfit.type_name),
            'Name the columns to record without it, the primary key aside: dp_track(..., columns => ''{column, column}'').');
    END IF;
    SELECT count(*) INTO columns FROM pg_attribute AS a WHERE a.attrelid = relation AND a.attnum = ANY (numbers) AND a.attnum <> ALL (unit);
    IF columns * rows_per_unit > 5000 OR 48 * columns + 24 * cardinality(unit) + 128 > current_setting('block_size')::integer THEN
        PERFORM dbext_private.refuse(format('%s rows of %s columns are too many for one image', rows_per_unit, columns),
            'Record fewer columns, or let fewer rows count: columns times rows_per_unit is at most 5000.');
    END IF;
END $$;
COMMENT ON FUNCTION dbext_private.refuse_unfit_rows(oid, smallint[], smallint[], integer) IS
    'Refuses columns whose values in several rows could be more than an image holds: nothing may fail because of one unit''s rows.';

CREATE FUNCTION dbext_private.create_row_table(table_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    key_names text;
BEGIN
    -- The unit leads, so that the index finds its first rows.
    SELECT string_agg(format('key_%s', c.position), ', ' ORDER BY c.is_unit DESC, c.position) INTO key_names
    FROM dbext_private.tracked_column AS c JOIN dbext_private.tracked_table AS t USING (table_id)
    WHERE c.table_id = create_row_table.table_id AND c.is_key AND t.rows_per_unit IS NOT NULL;
    IF key_names IS NOT NULL THEN
        EXECUTE format('CREATE TABLE dbext_private.row_%s (%s%s, PRIMARY KEY (%s)) WITH (fillfactor = 80)', table_id,
            ltrim(dbext_private.run_time_columns(table_id, '{key}', true, NULL), ', '), dbext_private.run_time_columns(table_id, '{image}', false, NULL), key_names);
        EXECUTE format('COMMENT ON TABLE dbext_private.row_%s IS %L', table_id, 'Rows as they were at the end of the last sealed tick: the images of units are made of them.');
    END IF;
END $$;
COMMENT ON FUNCTION dbext_private.create_row_table(integer) IS 'Makes the table of the rows of a newly tracked table, if its units have several.';
