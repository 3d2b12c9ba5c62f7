-- Bounds of columns: without them no sum has a price.

CREATE FUNCTION dp_bounds(tbl regclass, column_name text, low numeric, high numeric, grid numeric DEFAULT NULL) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN dbext_private.call('declare_bounds', jsonb_build_object(
        'tbl', tbl::oid::bigint, 'column_name', column_name, 'low', low::text, 'high', high::text, 'grid', grid::text)) #>> '{}';
END $$;
COMMENT ON FUNCTION dp_bounds(regclass, text, numeric, numeric, numeric) IS
    'Declare what the values of a column lie between, so that it can be summed: values beyond count as the nearer bound, all are rounded to the grid.';

CREATE FUNCTION dp_window_sum(
    tbl regclass, column_name text, window_start text, window_end text, predicate text DEFAULT NULL, measure text DEFAULT 'net',
    epsilon numeric DEFAULT NULL, noise text DEFAULT NULL
) RETURNS dbext.window_answer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN jsonb_populate_record(NULL::dbext.window_answer, dbext_private.call('window_stats', jsonb_build_object(
        'tbl', tbl::oid::bigint, 'column_name', coalesce(column_name, ''), 'window_start', window_start, 'window_end', window_end,
        'predicate', predicate, 'measure', measure, 'epsilon', epsilon::text, 'noise', noise)));
END $$;
COMMENT ON FUNCTION dp_window_sum(regclass, text, text, text, text, text, numeric, text) IS
    'Sum of a column with bounds over a past window, with its error; text dates are read in the table''s time zone. Charged once, remembered for ever.';
