"""The rows of the matrix that are about partitioned tables."""

from __future__ import annotations

from tests.integration.changes import THEN, Change

LEAVES = """CREATE TABLE a PARTITION OF entry FOR VALUES FROM (0) TO (10); CREATE TABLE b PARTITION OF entry FOR VALUES FROM (10) TO (20);
    CREATE TABLE d PARTITION OF entry DEFAULT; INSERT INTO entry VALUES (1, 'one'), (2, 'two'), (11, 'eleven'), (12, NULL), (99, 'rest')"""


def ranges(*ticks: str, before: str = LEAVES, **options) -> Change:
    """Return changes of a table partitioned by ranges of its key: a [0, 10), b [10, 20), d the rest."""
    return Change(ticks, table="entry (id integer PRIMARY KEY, value text) PARTITION BY RANGE (id)", before=before, **options)


REGIONS = """CREATE TABLE n PARTITION OF entry FOR VALUES IN ('n') PARTITION BY HASH (id); CREATE TABLE n0 PARTITION OF n FOR VALUES WITH (MODULUS 2, REMAINDER 0);
    CREATE TABLE n1 (value text, gone text, region text NOT NULL, id integer NOT NULL); ALTER TABLE n1 DROP COLUMN gone;
    ALTER TABLE n ATTACH PARTITION n1 FOR VALUES WITH (MODULUS 2, REMAINDER 1); CREATE TABLE s PARTITION OF entry FOR VALUES IN ('s');
    INSERT INTO entry SELECT i, CASE WHEN i < 9 THEN 'n' ELSE 's' END, 'v' || i FROM generate_series(1, 16) AS i"""


def regions(*ticks: str, **options) -> Change:
    """Return changes of a table in partitions of partitions, of which one has its columns in another order; its unit is the bare number."""
    return Change(
        ticks,
        table="entry (id integer, region text, value text, PRIMARY KEY (id, region)) PARTITION BY LIST (region)",
        before=REGIONS,
        track="unit => '{id}'",
        **options,
    )


PARTITIONS = {
    "through a partitioned table": ranges(
        "INSERT INTO entry VALUES (3, 'x'), (13, 'y'), (77, 'z'); UPDATE entry SET value = 'u' WHERE id IN (2, 12)",
        "DELETE FROM entry WHERE id > 11; INSERT INTO entry VALUES (1, 'up'), (19, 'in') ON CONFLICT (id) DO UPDATE SET value = excluded.value",
        "TRUNCATE entry; INSERT INTO entry VALUES (5, 'anew')",
    ),
    "merge into a partitioned table": ranges(
        """MERGE INTO entry AS e USING (VALUES (1, 'm'), (2, NULL), (60, 'new')) AS v (i, x) ON e.id = v.i
        WHEN MATCHED AND v.x IS NULL THEN DELETE WHEN MATCHED THEN UPDATE SET value = v.x WHEN NOT MATCHED THEN INSERT VALUES (v.i, v.x)""",
        since=15,
    ),
    "directly into partitions": ranges(
        "INSERT INTO a VALUES (3, 'x'), (4, 'y'); UPDATE b SET value = 'u'; DELETE FROM d; UPDATE a SET id = 5 WHERE id = 1",
        "COPY a FROM PROGRAM 'printf \"7\\tseven\\n\"'; UPDATE entry SET value = value || '!'",
    ),
    "rows that move to another partition": ranges("UPDATE entry SET id = id + 14 WHERE id < 3", "UPDATE entry SET id = 3 WHERE id = 99"),
    "moves whose second half a trigger suppresses": ranges(
        "UPDATE entry SET id = 14 WHERE id = 1",
        "UPDATE entry SET id = id + 14 WHERE id IN (2, 99)",
        before=LEAVES
        + """; CREATE FUNCTION skip() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN RETURN NULL; END $f$;
            CREATE TRIGGER skip BEFORE INSERT ON b FOR EACH ROW EXECUTE FUNCTION skip()""",
    ),
    "one partition truncated": ranges("UPDATE entry SET value = 'x'; TRUNCATE a", "INSERT INTO entry VALUES (2, 'back'); TRUNCATE b, d"),
    "partitions created": ranges(
        "DELETE FROM d; CREATE TABLE e PARTITION OF entry FOR VALUES FROM (20) TO (30); INSERT INTO e VALUES (21, 'x'); INSERT INTO entry VALUES (22, 'y')",
        "UPDATE e SET value = 'z'; TRUNCATE e",
    ),
    "a partition attached with its rows": ranges(
        "DELETE FROM d; CREATE TABLE e (value text, id integer NOT NULL); INSERT INTO e VALUES ('x', 21), ('y', 22);"
        " ALTER TABLE entry ATTACH PARTITION e FOR VALUES FROM (20) TO (30)",
        "UPDATE entry SET value = 'z' WHERE id = 21; DELETE FROM e WHERE id = 22",
    ),
    "a partition detached with its rows, and back": ranges(
        """ALTER TABLE entry DETACH PARTITION a; UPDATE a SET value = 'apart'; ALTER TABLE entry DETACH PARTITION b; DROP TABLE b;
        CREATE TABLE b PARTITION OF entry FOR VALUES FROM (10) TO (20)""",
        "INSERT INTO a VALUES (4, 'more'); ALTER TABLE entry ATTACH PARTITION a FOR VALUES FROM (0) TO (10)",
        "UPDATE entry SET value = 'end'; TRUNCATE a",
    ),
    "a partition detached concurrently": ranges(
        "ALTER TABLE entry DETACH PARTITION d" + THEN + "ALTER TABLE entry DETACH PARTITION a CONCURRENTLY",
        "INSERT INTO a VALUES (5, 'apart'); UPDATE b SET value = 'x'",
    ),
    "partitions renamed and moved": ranges(
        "ALTER TABLE a RENAME TO c; ALTER TABLE entry RENAME value TO content; UPDATE c SET content = 'x'",
        "CREATE SCHEMA apart_{schema}; ALTER TABLE c SET SCHEMA apart_{schema}; UPDATE apart_{schema}.c SET content = 'y'; TRUNCATE apart_{schema}.c",
    ),
    "partitions in replica sessions": ranges(
        "SET session_replication_role = replica; UPDATE a SET value = 'r'; UPDATE entry SET value = 's' WHERE id > 11; RESET session_replication_role"
    ),
    "a foreign key to a partitioned table": Change(
        ("DELETE FROM parent WHERE id = 1", "UPDATE parent SET id = 9 WHERE id = 2"),
        table="entry (id integer PRIMARY KEY, value integer REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE) PARTITION BY HASH (id)",
        before="""CREATE TABLE h0 PARTITION OF entry FOR VALUES WITH (MODULUS 2, REMAINDER 0); CREATE TABLE h1 PARTITION OF entry FOR VALUES WITH (MODULUS 2, REMAINDER 1);
            INSERT INTO parent VALUES (1), (2); INSERT INTO entry SELECT i, i % 2 + 1 FROM generate_series(1, 9) AS i""",
    ),
    "a BEFORE trigger of a partition": ranges(
        "INSERT INTO entry VALUES (3, 'x'), (13, 'y'); UPDATE entry SET value = 'z'",
        before=LEAVES
        + """; CREATE FUNCTION shout() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN NEW.value := 'shouted'; RETURN NEW; END $f$;
            CREATE TRIGGER shout BEFORE INSERT OR UPDATE ON b FOR EACH ROW EXECUTE FUNCTION shout()""",
    ),
    "moves are one mutation of one entry": regions(
        "UPDATE entry SET region = 's', value = 'moved' WHERE id < 4",
        "UPDATE entry SET region = CASE region WHEN 's' THEN 'n' ELSE 's' END",
    ),
    "partitions of partitions": regions(
        "UPDATE n SET value = 'n'; UPDATE n1 SET value = 'n1'; DELETE FROM n0 WHERE id = (SELECT min(id) FROM n0); UPDATE entry SET id = id + 100",
        "TRUNCATE n; INSERT INTO n VALUES (1, 'n', 'anew'), (2, 'n', 'anew')",
        "INSERT INTO s VALUES (500, 's', 'x'); TRUNCATE n1",
    ),
    "keys swapped in one statement": regions(
        "UPDATE entry SET id = 17 - id",
        "UPDATE entry SET id = 17 - id, value = value || id WHERE id IN (1, 2, 16, 15)",
        "UPDATE entry SET id = 17 - id WHERE id IN (3, 14); DELETE FROM entry WHERE id = 3; UPDATE entry SET id = 17 - id WHERE id IN (4, 13)",
        in_order=False,
    ),
    "a merge that inserts, deletes and moves": regions(
        """MERGE INTO entry AS e USING (VALUES (1, 's'), (2, NULL), (3, 's'), (60, 'n'), (12, 'n')) AS v (i, r) ON e.id = v.i
        WHEN MATCHED AND v.r IS NULL THEN DELETE WHEN MATCHED THEN UPDATE SET region = v.r, value = 'moved' WHEN NOT MATCHED THEN INSERT VALUES (v.i, v.r, 'new')""",
        "UPDATE entry SET value = value || '!' WHERE id IN (1, 3, 12, 60)",
        since=15,
    ),
    "a tree detached and attached": regions(
        "ALTER TABLE entry DETACH PARTITION n; UPDATE n SET value = 'apart'; INSERT INTO s VALUES (70, 's', 'x')",
        "DELETE FROM n WHERE id = 3; ALTER TABLE entry ATTACH PARTITION n FOR VALUES IN ('n')",
        "UPDATE n SET value = 'z'; UPDATE n0 SET value = 'y'",
    ),
}
