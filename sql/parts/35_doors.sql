-- The doors: from SQL into Python, and from a session into a second one. Everything written in PL/Python is here.

CREATE FUNCTION dbext_private.boot() RETURNS text
LANGUAGE plpython3u SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
import json, os, sys
os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')
folder = plpy.execute('SELECT r.python_path FROM dbext_private.runtime AS r')[0]['python_path']
if folder not in sys.path:
    sys.path.insert(0, folder)
try:
    from dbext import server
except ImportError:
    message, hint = 'the Python packages of dbext cannot be imported', 'Run "dbext install" again and reconnect.'
    return json.dumps({'refusal': {'sqlstate': 'DP050', 'message': message, 'detail': None, 'hint': hint}})
GD['dbext'] = server
$$;
COMMENT ON FUNCTION dbext_private.boot() IS
    'Imports the Python package from the folder in dbext_private.runtime, once per backend and before all else on the path; a refusal if it cannot.';

CREATE FUNCTION dbext_private.run(entry text, arguments text) RETURNS text
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
refusal = None if 'dbext' in GD else plpy.execute('SELECT dbext_private.boot() AS refusal')[0]['refusal']
return refusal or GD['dbext'].run('0.1.0', entry, arguments)
$$;
COMMENT ON FUNCTION dbext_private.run(text, text) IS
    'Runs one entry of dbext.server with JSON arguments and returns its JSON reply; the literal is the version of this script.';

CREATE FUNCTION dbext_private.in_second_session(entry text, request jsonb) RETURNS text
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
import json
return GD['dbext'].run('0.1.0', 'in_second_session', json.dumps({'entry': entry, 'request': json.loads(request)}))
$$;
COMMENT ON FUNCTION dbext_private.in_second_session(text, jsonb) IS
    'Answers a question or reserves a release in a session of its own. Owned by a superuser: opening that session is more than dbext_owner may do.';

CREATE FUNCTION dbext_private.call(entry text, arguments jsonb) RETURNS jsonb
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
SET standard_conforming_strings = on
SET transform_null_equals = off
SET array_nulls = on
SET datestyle = 'ISO, YMD'
SET intervalstyle = 'postgres'
SET timezone = 'UTC'
SET extra_float_digits = 1
SET quote_all_identifiers = off
SET default_tablespace = ''
-- Compiling a statement costs hundreds of milliseconds, more than almost all of ours take.
SET jit = off
AS $$
DECLARE
    reply jsonb := dbext_private.run(entry, arguments::text)::jsonb;
    refusal jsonb := reply -> 'refusal';
    state text := refusal ->> 'sqlstate';
    message text := refusal ->> 'message';
    detail text := refusal ->> 'detail';
    hint text := refusal ->> 'hint';
BEGIN
    IF refusal IS NULL THEN
        RETURN reply -> 'value';
    ELSIF detail IS NULL AND hint IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message;
    ELSIF detail IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message, HINT = hint;
    ELSIF hint IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message, DETAIL = detail;
    END IF;
    RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message, DETAIL = detail, HINT = hint;
END $$;
COMMENT ON FUNCTION dbext_private.call(text, jsonb) IS
    'Runs one entry and raises its refusal as an ordinary error. Settings that change how text is read or written are pinned.';

CREATE FUNCTION dbext_private.span(duration interval) RETURNS jsonb
LANGUAGE sql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp AS $$
    SELECT jsonb_build_object(
        'months', (extract(year FROM duration) * 12 + extract(month FROM duration))::bigint,
        'days', extract(day FROM duration)::bigint,
        'microseconds', ((extract(hour FROM duration) * 60 + extract(minute FROM duration)) * 60000000 + extract(microseconds FROM duration))::bigint)
$$;
COMMENT ON FUNCTION dbext_private.span(interval) IS 'The three parts of an interval, as Python takes them.';

CREATE FUNCTION dbext_private.spans(durations interval[]) RETURNS jsonb
LANGUAGE sql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(jsonb_agg(dbext_private.span(d.duration) ORDER BY d.place), '[]')
    FROM unnest(durations) WITH ORDINALITY AS d(duration, place)
$$;
COMMENT ON FUNCTION dbext_private.spans(interval[]) IS 'The parts of each of several intervals, as Python takes them.';

CREATE FUNCTION dbext_private.canonical_literal(literal text, literal_type regtype, zone text) RETURNS text
LANGUAGE plpgsql STABLE STRICT
SET search_path = pg_catalog, pg_temp
SET datestyle = 'ISO, YMD'
SET intervalstyle = 'postgres'
SET timezone = 'UTC'
SET extra_float_digits = 1
AS $$
DECLARE
    canonical text;
BEGIN
    PERFORM set_config('timezone', zone, true);
    -- A quoted constant goes through the type's input function; a cast of a text could call a function that the type's owner wrote.
    EXECUTE format('SELECT format(''%%s'', %L::%s)', literal, format_type(literal_type, NULL)) INTO canonical;
    RETURN canonical;
EXCEPTION WHEN OTHERS THEN
    RETURN NULL;
END $$;
COMMENT ON FUNCTION dbext_private.canonical_literal(text, regtype, text) IS
    'The text of a literal as its type writes it, dates without a zone read in the given one; NULL when the type refuses it.';
