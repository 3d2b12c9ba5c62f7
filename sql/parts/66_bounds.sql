-- Bounds of columns: without them no sum has a price.

CREATE FUNCTION dp_bounds(tbl regclass, column_name text, low numeric, high numeric, grid numeric DEFAULT NULL) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN dbext_private.call('declare_bounds', jsonb_build_object(
        'tbl', tbl::oid::bigint, 'column_name', column_name, 'low', low::text, 'high', high::text, 'grid', grid::text)) #>> '{}';
END $$;
COMMENT ON FUNCTION dp_bounds(regclass, text, numeric, numeric, numeric) IS
    'Declare what the values of a column lie between, so that it can be summed: values beyond count as the nearer bound, all are rounded to the grid.';
