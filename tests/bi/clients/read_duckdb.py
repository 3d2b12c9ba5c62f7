"""DuckDB: over its own postgres extension where that can be had, else over Arrow from ADBC; then one analytical query."""

import json
import os

import adbc_driver_postgresql.dbapi
import duckdb

QUERY = """SELECT county, max(entered) AS peak, arg_max(window_end, entered) AS peak_at, count(*) AS windows,
    avg((lower_95 <= upper_95)::integer) AS sane FROM {} GROUP BY county ORDER BY county"""
here = duckdb.connect()
try:
    here.execute("INSTALL postgres; LOAD postgres; ATTACH '' AS warehouse (TYPE postgres, READ_ONLY)")
    way, relation = "postgres extension", "warehouse.dp_release.confirmed_14d"
except duckdb.Error:
    uri = os.environ["RELEASE_URL"].replace("+psycopg2", "")
    with adbc_driver_postgresql.dbapi.connect(uri) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT * FROM dp_release.confirmed_14d")
        release = cursor.fetch_arrow_table()
    way, relation = "adbc", "release"
types = {row[0]: row[1] for row in here.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()}
rows = here.execute(QUERY.format(relation)).fetchall()
print(json.dumps({"way": way, "types": types, "rows": [[row[0], float(row[1]), str(row[2]), row[3], row[4]] for row in rows]}))
