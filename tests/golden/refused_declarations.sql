# Declarations that are refused, each with its exact message. Settings as in plans.sql.

# --- not one plain SELECT
INSERT INTO cases VALUES (1);
DP010 at 1: a declaration is one SELECT
hint: Write SELECT count(*) FROM the tracked table.;

VALUES (1);
DP010 at 1: a declaration is one SELECT
hint: Write SELECT count(*) FROM the tracked table.;

EXPLAIN SELECT count(*) FROM cases;
DP010 at 1: a declaration is one SELECT
hint: Write SELECT count(*) FROM the tracked table.;

WITH c AS (SELECT 1) SELECT count(*) FROM c;
DP010 at 1: only one plain SELECT can be released
hint: Declare each statistic as a release of its own.;

SELECT count(*) FROM cases; SELECT count(*) FROM cases;
DP010 at 27: only one statement is allowed;

SELECT count(*) FROM cases UNION SELECT 1;
DP010 at 28: only one plain SELECT can be released
hint: Declare each statistic as a release of its own.;

SELECT count(*) INTO copy FROM cases;
DP010 at 17: only one plain SELECT can be released
hint: Declare each statistic as a release of its own.;

SELECT count(*);
DP010: FROM is missing
hint: Name the tracked table.;

# --- other tables
SELECT count(*) FROM cases, county;
DP010 at 29: only one table can be counted: no joins
hint: Count one tracked table; bring the columns you need into it.;

SELECT count(*) FROM cases JOIN county ON county = name;
DP010 at 28: only one table can be counted: no joins
hint: Count one tracked table; bring the columns you need into it.;

SELECT count(*) FROM cases NATURAL JOIN county;
DP010 at 28: only one table can be counted: no joins
hint: Count one tracked table; bring the columns you need into it.;

SELECT count(*) FROM cases CROSS JOIN LATERAL (SELECT 1) AS x;
DP010 at 28: only one table can be counted: no joins
hint: Count one tracked table; bring the columns you need into it.;

SELECT count(*) FROM (SELECT * FROM cases) AS c;
DP010 at 23: subqueries are not allowed
hint: Write the condition over the columns of the tracked table alone.;

SELECT count(*) FROM generate_series(1, 10);
DP010 at 22: the function generate_series() is not allowed
hint: Only lower(column) and upper(column) can be called: any other could fail, change or run code of its own.;

SELECT count(*) FROM ONLY cases;
DP010 at 22: ONLY is not allowed
hint: Name the tracked table alone.;

SELECT count(*) FROM other.public.cases;
DP010 at 22: this name has too many parts
hint: Write schema.table for a table, and column or table.column for a column.;

SELECT count(*) FROM cases AS c (a, b);
DP010 at 31: an alias takes no column names;

SELECT count(*) FROM cases TABLESAMPLE SYSTEM (10);
DP010 at 28: every row counts: no sampling
hint: Put conditions in WHERE.;

SELECT count(*) FROM cases AS c WHERE cases.status = 'a';
DP010 at 39: this column belongs to no table of the text
hint: The table goes by c here.;

# --- other statistics
SELECT * FROM cases;
DP010 at 8: count(*) is missing
hint: Write SELECT county, count(*) with the columns of GROUP BY before it.;

SELECT status FROM cases;
DP010 at 8: count(*) is missing
hint: Write SELECT county, count(*) with the columns of GROUP BY before it.;

SELECT count(1) FROM cases;
DP010 at 8: count() takes a star or a column
hint: count(1) is count(*).;

SELECT count(DISTINCT status) FROM cases;
DP010 at 8: the number of distinct values cannot be released: one entry decides whether a value occurs, as often as others with that value come and go
hint: Count entries with count(DISTINCT id), or group by the column, with its values as public keys.;

SELECT count(*) OVER () FROM cases;
DP010 at 17: window functions are not allowed
hint: Write count(*), sum(column) and GROUP BY.;

SELECT count(*), count(*) FROM cases;
DP010 at 18: two figures are named count
hint: Give each a name: count(*) AS n.;

SELECT DISTINCT count(*) FROM cases;
DP010 at 8: DISTINCT is not allowed here
hint: Write count(DISTINCT unit) to count entries; for comparing, use = or <> and IS NULL.;

SELECT count(*) + 1 FROM cases;
DP010 at 17: arithmetic is not allowed
hint: Compare the column itself with a literal, and dp_time with now() - INTERVAL '14 days'; compute with figures when you read them.;

SELECT max(age), count(*) FROM cases;
DP010 at 8: max() cannot be released: one entry alone decides it, so that its noise would have to be as wide as the column
hint: Count beyond limits of your own: count(*) FILTER (WHERE age >= 90) AS over_90.;

# --- figures
SELECT min(age) FROM cases;
DP010 at 8: min() cannot be released: one entry alone decides it, so that its noise would have to be as wide as the column
hint: Count beyond limits of your own: count(*) FILTER (WHERE age >= 90) AS over_90.;

SELECT median(age) FROM cases;
DP010 at 8: median() is not available: it lies between two entries' values, and one entry can move it from any value to any other
hint: Quantiles are read from noisy counts: percentile_disc(0.5) WITHIN GROUP (ORDER BY dp_bounds(age, 0, 100, 5)) AS median.;

SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY age) FROM cases;
DP010 at 8: percentile_cont() is not available: it lies between two entries' values, and one entry can move it from any value to any other
hint: Quantiles are read from noisy counts: percentile_disc(0.5) WITHIN GROUP (ORDER BY dp_bounds(age, 0, 100, 5)) AS median.;

SELECT mode() WITHIN GROUP (ORDER BY age) FROM cases;
DP010 at 8: mode() cannot be released: one entry alone decides it where two values are nearly as frequent
hint: Group by the column, with its values as public keys, or by width_bucket(column, low, high, number), and count.;

SELECT string_agg(status, ',') FROM cases;
DP010 at 8: string_agg() cannot be released: it shows the values of single entries
hint: Group by a column with public keys and count.;

SELECT corr(age, score) FROM cases;
DP010 at 8: corr() is not available
hint: Release sum, avg and variance of each column; products need a column that holds them.;

SELECT bool_or(imported) FROM cases;
DP010 at 8: bool_or() cannot be released: one entry alone decides it
hint: Count those that satisfy the condition: count(*) FILTER (WHERE condition).;

SELECT approx_count_distinct(status) FROM cases;
DP010 at 8: approx_count_distinct() cannot be released: one entry decides whether a value occurs, as often as others with that value come and go
hint: Group by the column, with its values as public keys, and count.;

SELECT count(DISTINCT id, status) FROM cases;
DP010 at 8: the number of distinct values cannot be released: one entry decides whether a value occurs, as often as others with that value come and go
hint: Count entries with count(DISTINCT id), or group by the column, with its values as public keys.;

SELECT sum(DISTINCT age) FROM cases;
DP010 at 21: sum(DISTINCT ...) cannot be released
hint: Leave DISTINCT out.;

SELECT count(*) * 2 FROM cases;
DP010 at 8: a figure stands alone, without arithmetic or anything else around it
hint: Compute with figures when you read the release table, or in a view on it.;

SELECT count(*), sum(age) - count(*) FROM cases;
DP010 at 18: a figure stands alone, without arithmetic or anything else around it
hint: Compute with figures when you read the release table, or in a view on it.;

SELECT sum(age + 1) FROM cases;
DP010 at 16: arithmetic is not allowed
hint: Compare the column itself with a literal, and dp_time with now() - INTERVAL '14 days'; compute with figures when you read them.;

SELECT sum(age * id) FROM cases;
DP010 at 12: sum() takes a column, or its square
hint: Write sum(column * column), or track a column that holds the value; PostgreSQL can generate one.;

SELECT sum(age * 2) FROM cases;
DP010 at 12: sum() takes a column, or its square
hint: Write sum(column * column), or track a column that holds the value; PostgreSQL can generate one.;

SELECT avg(age * age) FROM cases;
DP010 at 8: avg() takes a column
hint: Track a column that holds the value; PostgreSQL can generate one.;

-- every: 1 day
SELECT sum(age * age) FROM cases;
DP010 at 12: column age has no bounds, so that one entry could change its sum without limit
hint: SELECT dp_bounds('cases', 'age', low, high); values beyond are counted as the nearer bound.;

-- every: 1 day
-- bounds: age 0 40000 1
SELECT sum(age * age) FROM cases;
DP001: the bounds of column age are too many steps of its grid apart for sum()
hint: Declare a coarser grid with dp_bounds: values are rounded to it.;

SELECT sum(1) FROM cases;
DP010 at 8: sum() takes a column
hint: Track a column that holds the value; PostgreSQL can generate one.;

SELECT sum(*) FROM cases;
DP010 at 8: sum() takes a column
hint: Track a column that holds the value; PostgreSQL can generate one.;

SELECT sum(status) FROM cases;
DP010 at 12: sum() needs a column of numbers, and status is of type pg_catalog.text
hint: Count entries instead: count(*) FILTER (WHERE condition).;

SELECT avg(onset) FROM cases;
DP010 at 12: avg() needs a column of numbers, and onset is of type pg_catalog.date
hint: Count entries instead: count(*) FILTER (WHERE condition).;

SELECT sum(nothing) FROM cases;
DP010 at 12: there is no tracked column nothing
hint: Tracked columns: Kreis, address, age, amount, county, id, imported, noted, onset, photo, score, seen, serotype, status, stay, token, user, vaccinated, 縣市.;

SELECT sum(lower(status)) FROM cases;
DP010 at 8: sum() takes a column
hint: Track a column that holds the value; PostgreSQL can generate one.;

-- every: 1 day
SELECT sum(age) FROM cases;
DP010 at 12: column age has no bounds, so that one entry could change its sum without limit
hint: SELECT dp_bounds('cases', 'age', low, high); values beyond are counted as the nearer bound.;

-- every: 1 day
SELECT sum(amount) FILTER (WHERE imported) AS a, avg(amount) FROM cases;
DP010 at 12: column amount has no bounds, so that one entry could change its sum without limit
hint: SELECT dp_bounds('cases', 'amount', low, high); values beyond are counted as the nearer bound.;

SELECT count(*) FILTER (imported) FROM cases;
DP010 at 17: FILTER stands after a figure
hint: Write count(*) FILTER (WHERE condition).;

SELECT count(*) FILTER (WHERE) FROM cases;
DP010 at 30: this is not understood as SQL
hint: A comma, an operator or a keyword may be missing or out of place near here.;

SELECT filter (WHERE imported) FROM cases;
DP010 at 8: FILTER stands after a figure
hint: Write count(*) FILTER (WHERE condition).;

SELECT county FILTER (WHERE imported), count(*) FROM cases GROUP BY county;
DP010 at 15: FILTER stands after a figure
hint: Write count(*) FILTER (WHERE condition).;

SELECT count(*) FILTER (WHERE count(*) > 1) FROM cases;
DP010 at 31: count(*) and other figures belong into the list after SELECT, and only there;

SELECT count(*) FILTER (WHERE imported) FILTER (WHERE vaccinated) FROM cases;
DP010 at 48: this is not understood as SQL
hint: A comma, an operator or a keyword may be missing or out of place near here.;

SELECT count(*) FILTER (WHERE id IN (SELECT id FROM cases)) FROM cases;
DP010 at 38: subqueries are not allowed
hint: Write the condition over the columns of the tracked table alone.;

SELECT count(*) FILTER (WHERE dp_time > now() - INTERVAL '7 days') AS d7, count(*) AS n FROM cases;
DP010 at 75: this figure has no window, and others have
hint: Write count(*) FILTER (WHERE dp_time > now() - INTERVAL '7 days') AS d7, and a window of its own for every other figure.;

-- every: 1 day
SELECT count(*) FILTER (WHERE dp_time > now() - INTERVAL '7 days') FROM cases WHERE dp_time > now() - INTERVAL '14 days';
DP010 at 8: this figure has a window, and the declaration has another
hint: State windows in WHERE, or in every FILTER.;

SELECT count(*) FILTER (WHERE dp_time > '2015-09-01') FROM cases;
DP010 at 8: the window of a FILTER moves with now()
hint: Write count(*) FILTER (WHERE dp_time > now() - INTERVAL '7 days') AS d7, and a window of its own for every other figure.;

SELECT count(*) FILTER (WHERE dp_time > now() - INTERVAL '7 days') AS d7, count(*) FILTER (WHERE dp_time > now() - INTERVAL '14 days' AND dp_time <= now() - INTERVAL '2 days') AS d14 FROM cases;
DP010 at 75: the windows of one release end at one time
hint: Declare a release for each age.;

SELECT count(*) AS n, sum(age) AS n FROM cases;
DP010 at 23: two figures are named n
hint: Give each a name: count(*) AS n.;

-- every: 1 day
SELECT count(*) AS window_end FROM cases;
DP010 at 8: a release table has a column window_end of its own
hint: Give the figure another name: count(*) AS n.;

-- every: 1 day
SELECT count(*) AS a, count(*) FILTER (WHERE imported) AS a_lower_95 FROM cases;
DP010 at 23: a release table has a column a_lower_95 of its own
hint: Give the figure another name: count(*) AS n.;

-- every: 1 day
SELECT count(*) AS nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn FROM cases;
DP010 at 8: a figure's name has at most 53 bytes;

SELECT count(age imported) FROM cases;
DP010 at 18: this is not understood as SQL
hint: A comma, an operator or a keyword may be missing or out of place near here.;

SELECT avg(age) OVER () FROM cases;
DP010 at 17: window functions are not allowed
hint: Write count(*), sum(column) and GROUP BY.;

-- every: 1 day
-- bounds: age 0 120
SELECT avg(age) FROM cases WHERE dp_time > now() - INTERVAL '7 days';
DP010 at 8: avg() of changes means nothing: measure net sums what came less what went
hint: Use measure => 'entered' for those who came in the window, 'left' for those who went, or 'state' without a window.;

-- every: 1 day
-- bounds: age 0 120
-- max_error: 10
-- measure: state
SELECT count(*) AS n, avg(age) FROM cases;
DP001: no budget promises an error of avg: how exact avg() is depends on how many entries there are
hint: Declare count and sum of the same column beside it and limit their errors, or give epsilon.;

-- every: 1 day
-- bounds: score -1000000 1000000 0.1
SELECT variance(score) FROM cases;
DP001: the bounds of column score are too many steps of its grid apart for variance()
hint: Declare a coarser grid with dp_bounds: values are rounded to it.;

-- every: 1 day
-- bounds: score -100000000 100000000 0.1
SELECT sum(score) FROM cases;
DP001: the bounds of column score are too many steps of its grid apart for sum()
hint: Declare a coarser grid with dp_bounds: values are rounded to it.;

-- every: 1 day
SELECT county, sum(age) FROM cases GROUP BY county;
DP010 at 45: GROUP BY county needs a public list of keys
hint: Add groups => with VALUES ('a'), ('b') or SELECT column FROM table.;

# --- groups
SELECT county, count(*) FROM cases;
DP010 at 8: column county must also stand in GROUP BY;

SELECT count(*) FROM cases GROUP BY county;
DP010 at 37: column county of GROUP BY must also stand after SELECT
hint: Write SELECT county, count(*) with the columns of GROUP BY before it.;

SELECT county, status, count(*) FROM cases GROUP BY county;
DP010 at 16: column status must also stand in GROUP BY;

SELECT county, count(*) FROM cases GROUP BY 2;
DP010 at 45: this place after SELECT holds no column and no bins
hint: Count the items after SELECT from 1, or write the name of a column.;

SELECT county, count(*) FROM cases GROUP BY 0;
DP010 at 45: this place after SELECT holds no column and no bins
hint: Count the items after SELECT from 1, or write the name of a column.;

SELECT county, count(*) FROM cases GROUP BY 'county';
DP010 at 45: GROUP BY takes plain columns by name
hint: Write the names of the columns, without parentheses.;

# --- bins
SELECT width_bucket(county, 0, 10, 5) AS bin, count(*) FROM cases GROUP BY bin;
DP010 at 21: width_bucket() needs a column of numbers, and county is of type pg_catalog.varchar
hint: Group by the column itself, with its values as public keys, or count with FILTER (WHERE condition).;

SELECT width_bucket(age, 0, 0, 5) AS bin, count(*) FROM cases GROUP BY bin;
DP010 at 8: the lower bound of width_bucket() equals its upper bound;

SELECT width_bucket(age, 0, 10, 0) AS bin, count(*) FROM cases GROUP BY bin;
DP010 at 8: the number of bins is a whole number from 1 to 999
hint: Write width_bucket(age, 0, 100, 20) or width_bucket(age, ARRAY[0, 18, 65, 80]).;

SELECT width_bucket(age, 0, 10, 2.5) AS bin, count(*) FROM cases GROUP BY bin;
DP010 at 8: the number of bins is a whole number from 1 to 999
hint: Write width_bucket(age, 0, 100, 20) or width_bucket(age, ARRAY[0, 18, 65, 80]).;

SELECT width_bucket(age, 0, 10, 1000) AS bin, count(*) FROM cases GROUP BY bin;
DP010 at 8: width_bucket() has more than 1000 edges
hint: Every bin is noised by itself: fewer tell more.;

SELECT width_bucket(age, 0, 10) AS bin, count(*) FROM cases GROUP BY bin;
DP010 at 8: width_bucket() has other arguments than these
hint: Write width_bucket(age, 0, 100, 20) or width_bucket(age, ARRAY[0, 18, 65, 80]).;

SELECT width_bucket(age, ARRAY[0, 18, 18]) AS bin, count(*) FROM cases GROUP BY bin;
DP010 at 8: the thresholds of width_bucket() must ascend
hint: Write them in order, each once.;

SELECT width_bucket(age, ARRAY[0, NULL]) AS bin, count(*) FROM cases GROUP BY bin;
DP010 at 32: a number is expected here
hint: Write it in digits, without quotes.;

SELECT width_bucket(age, ARRAY['0', '18']) AS bin, count(*) FROM cases GROUP BY bin;
DP010 at 32: a number is expected here
hint: Write it in digits, without quotes.;

SELECT width_bucket(age, ARRAY[ARRAY[0]]) AS bin, count(*) FROM cases GROUP BY bin;
DP010 at 31: operators on JSON and arrays are not allowed
hint: Bring the value into a column of the table.;

SELECT width_bucket(age, '{0,18}') AS bin, count(*) FROM cases GROUP BY bin;
DP010 at 26: a list of numbers is expected here
hint: Write ARRAY[0, 18, 65, 80].;

SELECT width_bucket(age, 0, 1e400, 5) AS bin, count(*) FROM cases GROUP BY bin;
DP010 at 8: an edge of bins lies between -9007199254740992 and 9007199254740992 and has at most 30 digits after the point;

SELECT width_bucket(age, 0, 1e-999999999, 5) AS bin, count(*) FROM cases GROUP BY bin;
DP010 at 8: an edge of bins lies between -9007199254740992 and 9007199254740992 and has at most 30 digits after the point;

SELECT width_bucket(age, 0, id, 5) AS bin, count(*) FROM cases GROUP BY bin;
DP010 at 29: a number is expected here
hint: Write it in digits, without quotes.;

SELECT width_bucket(lower(status), 0, 1, 5) AS bin, count(*) FROM cases GROUP BY bin;
DP010 at 8: width_bucket() takes a column and numbers
hint: Write width_bucket(age, 0, 100, 20) or width_bucket(age, ARRAY[0, 18, 65, 80]).;

SELECT width_bucket(age, 0, 100, 5) AS bin, count(*) FROM cases;
DP010 at 8: bins must also stand in GROUP BY
hint: Write GROUP BY bin.;

SELECT count(*) FROM cases GROUP BY width_bucket(age, 0, 100, 5);
DP010 at 37: bins of GROUP BY must also stand after SELECT
hint: Write SELECT county, count(*) with the columns of GROUP BY before it.;

SELECT width_bucket(age, 0, 100, 5) AS bin, count(*) FROM cases GROUP BY width_bucket(age, 0, 100, 6);
DP010 at 8: bins must also stand in GROUP BY
hint: Write GROUP BY bin.;

SELECT width_bucket(age, 0, 100, 5), width_bucket(amount, 0, 100, 5), count(*) FROM cases GROUP BY 1, 2;
DP010 at 100: bins are named twice
hint: Give each a name: width_bucket(...) AS bin.;

SELECT width_bucket(age, 0, 100, 5) AS county, count(*) FROM cases GROUP BY 1;
DP010 at 8: the table has a column county, too
hint: Give the bins another name: width_bucket(...) AS bin.;

SELECT count(*) FROM cases WHERE width_bucket(age, 0, 100, 5) = 1;
DP010 at 34: width_bucket() belongs into the list after SELECT, and into GROUP BY;

SELECT count(*) FROM cases WHERE age IN (ARRAY[1]);
DP010 at 48: ARRAY is only allowed in width_bucket() and percentile_disc()
hint: Write IN ('a', 'b') in a condition.;

SELECT sum(width_bucket(age, 0, 100, 5)) FROM cases;
DP010 at 8: sum() takes a column
hint: Track a column that holds the value; PostgreSQL can generate one.;

-- groups: VALUES (1)
SELECT width_bucket(age, 0, 100, 5) AS bin, count(*) FROM cases GROUP BY bin;
DP010: groups are given, but bins need none
hint: Leave groups out, or group by the columns.;

SELECT county, width_bucket(age, 0, 100, 5) AS bin, count(*) FROM cases GROUP BY county, bin;
DP010 at 82: GROUP BY county needs a public list of keys
hint: Add groups => with VALUES ('a'), ('b') or SELECT column FROM table.;

SELECT county AS c, count(*) FROM cases GROUP BY county;
DP010 at 8: only figures and bins can be named
hint: The release table calls a column of GROUP BY what the table does.;

SELECT county, count(*) FROM cases GROUP BY ROLLUP (county);
DP010 at 45: the function rollup() is not allowed
hint: Group by plain columns.;

SELECT county, count(*) FROM cases GROUP BY GROUPING SETS ((county), ());
DP010 at 45: the function grouping sets() is not allowed
hint: Group by plain columns.;

SELECT county, count(*) FROM cases GROUP BY (county, status);
DP010 at 46: GROUP BY takes plain columns by name
hint: Write the names of the columns, without parentheses.;

SELECT lower(county), count(*) FROM cases GROUP BY lower(county);
DP010 at 52: lower() can only be used in a condition
hint: Group by plain columns.;

SELECT date_trunc('week', onset), count(*) FROM cases GROUP BY 1;
DP010 at 8: the function date_trunc() is not allowed
hint: Compare the column with literals: >= '2015-09-01' AND < '2015-10-01'. Windows of a release: GROUP BY TUMBLE(dp_time, INTERVAL '1 day').;

SELECT county, county, count(*) FROM cases GROUP BY county;
DP010 at 8: a column is named twice;

SELECT county, count(*) FROM cases GROUP BY county, county;
DP010 at 45: a column is named twice;

SELECT county, count(*) FROM cases GROUP BY county HAVING count(*) > 10;
DP010 at 52: HAVING is not allowed
hint: Every group is published, zeros included: filter the release table when you read it.;

SELECT county, count(*) FROM cases GROUP BY county;
DP010 at 45: GROUP BY county needs a public list of keys
hint: Add groups => with VALUES ('a'), ('b') or SELECT column FROM table.;

SELECT dp_time, count(*) FROM cases GROUP BY dp_time;
DP010 at 46: dp_time cannot be used here
hint: It is the time of a mutation: it limits the window of a declaration, by dp_time > now() - INTERVAL '7 days' in WHERE or by GROUP BY TUMBLE(dp_time, INTERVAL '1 day').;

-- groups: VALUES ('Tainan')
SELECT count(*) FROM cases;
DP010: groups are given, but the declaration has no GROUP BY
hint: Leave groups out, or group by the columns.;

-- groups: SELECT DISTINCT name FROM county
SELECT county, count(*) FROM cases GROUP BY county;
DP010 at 17: in the list of groups, FROM is expected here
hint: Write VALUES ('a'), ('b') or SELECT column FROM table.;

-- groups: SELECT upper(name) FROM county
SELECT county, count(*) FROM cases GROUP BY county;
DP010 at 13: in the list of groups, FROM is expected here
hint: Write VALUES ('a'), ('b') or SELECT column FROM table.;

-- groups: SELECT name FROM county WHERE true
SELECT county, count(*) FROM cases GROUP BY county;
DP010 at 25: nothing may follow the list of groups
hint: Write VALUES ('a'), ('b') or SELECT column FROM table.;

-- groups: VALUES ('a', 'b')
SELECT county, count(*) FROM cases GROUP BY county;
DP010 at 14: each key of groups has 1 value, as GROUP BY has columns;

-- groups: VALUES (NULL)
SELECT county, count(*) FROM cases GROUP BY county;
DP010 at 9: a key of groups must be a literal
hint: Entries with NULL there belong to no published group.;

-- groups: VALUES (now())
SELECT county, count(*) FROM cases GROUP BY county;
DP010 at 9: a key of groups must be a literal
hint: Write it in quotes.;

-- groups: VALUES ('a'); DROP TABLE cases
SELECT county, count(*) FROM cases GROUP BY county;
DP010 at 15: nothing may follow the list of groups
hint: Write VALUES ('a'), ('b') or SELECT column FROM table.;

-- groups: SELECT name FROM county
SELECT county, status, count(*) FROM cases GROUP BY county, status;
DP010 at 1: groups of several columns must be written out
hint: Write VALUES ('a', 'x'), ('a', 'y'), one tuple for each key.;

-- groups: TABLE county
SELECT county, count(*) FROM cases GROUP BY county;
DP010 at 1: groups are VALUES or a SELECT
hint: Write VALUES ('a'), ('b') or SELECT column FROM table.;

# --- rest clauses
SELECT count(*) FROM cases ORDER BY 1;
DP010 at 28: the order and number of rows cannot be chosen
hint: Leave it out: a release publishes every group; order the release table when you read it.;

SELECT count(*) FROM cases LIMIT 10;
DP010 at 28: the order and number of rows cannot be chosen
hint: Leave it out: a release publishes every group; order the release table when you read it.;

SELECT count(*) FROM cases OFFSET 1;
DP010 at 28: the order and number of rows cannot be chosen
hint: Leave it out: a release publishes every group; order the release table when you read it.;

SELECT count(*) FROM cases FETCH FIRST ROW ONLY;
DP010 at 28: the order and number of rows cannot be chosen
hint: Leave it out: a release publishes every group; order the release table when you read it.;

SELECT count(*) FROM cases FOR UPDATE;
DP010 at 28: row locks are not allowed
hint: Leave FOR UPDATE or FOR SHARE out.;

SELECT count(*) FROM cases WINDOW w AS ();
DP010 at 28: only one plain SELECT can be released
hint: Declare each statistic as a release of its own.;

# --- the range of dp_time
SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '7 days' OR imported;
DP010 at 34: dp_time can only be joined to other conditions by AND
hint: Write dp_time > now() - INTERVAL '14 days', or two fixed times: dp_time >= '2015-09-01' AND dp_time < '2015-10-01'.;

SELECT count(*) FROM cases WHERE NOT dp_time > now() - INTERVAL '7 days';
DP010 at 38: dp_time can only be joined to other conditions by AND
hint: Write dp_time > now() - INTERVAL '14 days', or two fixed times: dp_time >= '2015-09-01' AND dp_time < '2015-10-01'.;

SELECT count(*) FROM cases WHERE dp_time = now();
DP010 at 34: dp_time can only be bounded by <, <=, >, >= or BETWEEN
hint: Write dp_time > now() - INTERVAL '14 days', or two fixed times: dp_time >= '2015-09-01' AND dp_time < '2015-10-01'.;

SELECT count(*) FROM cases WHERE dp_time IS NOT NULL;
DP010 at 34: dp_time can only be bounded by <, <=, >, >= or BETWEEN
hint: Write dp_time > now() - INTERVAL '14 days', or two fixed times: dp_time >= '2015-09-01' AND dp_time < '2015-10-01'.;

SELECT count(*) FROM cases WHERE dp_time > now();
DP010 at 44: the range starts at now(): it is empty
hint: Write dp_time > now() - INTERVAL '14 days', or two fixed times: dp_time >= '2015-09-01' AND dp_time < '2015-10-01'.;

SELECT count(*) FROM cases WHERE dp_time > now() - 14;
DP010 at 52: an interval is expected here
hint: Write it like INTERVAL '14 days'.;

SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '1.5 days';
DP010 at 61: an interval is not understood
hint: Write whole numbers with units, like '14 days' or '1 month'.;

SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '-7 days';
DP010 at 61: an interval is not understood
hint: Write whole numbers with units, like '14 days' or '1 month'.;

SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL 'P7D';
DP010 at 61: an interval is not understood
hint: Write whole numbers with units, like '14 days' or '1 month'.;

SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '0 days';
DP010 at 61: an interval must be longer than nothing;

SELECT count(*) FROM cases WHERE dp_time > now() + INTERVAL '7 days';
DP010 at 50: arithmetic is not allowed
hint: Compare the column itself with a literal, and dp_time with now() - INTERVAL '14 days'; compute with figures when you read them.;

SELECT count(*) FROM cases WHERE dp_time + INTERVAL '7 days' > now();
DP010 at 42: arithmetic is not allowed
hint: Compare the column itself with a literal, and dp_time with now() - INTERVAL '14 days'; compute with figures when you read them.;

SELECT count(*) FROM cases WHERE dp_time::date > '2015-09-01';
DP010 at 41: casts are not allowed
hint: Compare the column itself with a literal: the literal is read as the column's type.;

SELECT count(*) FROM cases WHERE dp_time > now() - interval;
DP010 at 52: an interval is expected here
hint: Write it like INTERVAL '14 days'.;

SELECT count(*) FROM cases WHERE dp_time > clock_timestamp() - INTERVAL '7 days';
DP010 at 44: the function clock_timestamp() is not allowed
hint: Write now(), which is the end of the window.;

SELECT count(*) FROM cases WHERE dp_time > now(3) - INTERVAL '7 days';
DP010 at 48: this is not allowed here
hint: Near: 3) - INTERVAL '7 days';

SELECT count(*) FROM cases WHERE dp_time > onset;
DP010 at 44: dp_time can only be compared with now(), now() - INTERVAL, or a time in quotes
hint: Write dp_time > now() - INTERVAL '14 days', or two fixed times: dp_time >= '2015-09-01' AND dp_time < '2015-10-01'.;

SELECT count(*) FROM cases WHERE dp_time > 'yesterday';
DP010 at 44: a time is not understood
hint: Write it like '2015-09-01' or '2015-09-01 12:00', or with an offset from UTC.;

SELECT count(*) FROM cases WHERE dp_time > '-infinity';
DP010 at 44: a time is not understood
hint: Write it like '2015-09-01' or '2015-09-01 12:00', or with an offset from UTC.;

SELECT count(*) FROM cases WHERE dp_time > '2015-02-30';
DP010 at 44: a time is not understood
hint: Write it like '2015-09-01' or '2015-09-01 12:00', or with an offset from UTC.;

SELECT count(*) FROM cases WHERE dp_time > TIMESTAMPTZ '2015-09-01';
DP010 at 56: a time has an offset where its type has none, or the other way round
hint: Write the string alone.;

SELECT count(*) FROM cases WHERE dp_time > DATE '2015-09-01 12:00';
DP010 at 49: a time is not understood
hint: Write it like '2015-09-01' or '2015-09-01 12:00', or with an offset from UTC.;

SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '7 days' AND dp_time > now() - INTERVAL '14 days';
DP010 at 74: dp_time has two lower bounds
hint: State each bound once.;

SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '7 days' AND dp_time < '2015-09-01';
DP010 at 34: a range cannot start at a moving time and end at a fixed one
hint: Write dp_time > now() - INTERVAL '14 days', or two fixed times: dp_time >= '2015-09-01' AND dp_time < '2015-10-01'.;

-- every: 1 day
SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '7 days' AND dp_time <= now() - INTERVAL '7 days';
DP001: the range of dp_time is empty
hint: The start must lie further back than the end.;

-- boundary 2015-09-01: 5719
SELECT count(*) FROM cases WHERE dp_time > '2015-09-01' AND dp_time < '2015-09-01 12:00';
DP010 at 71: a fixed time of dp_time is not a tick boundary
hint: Write the instant at which a tick of the table ends, such as midnight in its time zone for ticks of days.;

-- boundary 2015-09-01: 5719
-- boundary 2015-10-01: 5749
SELECT count(*) FROM cases WHERE dp_time > '2015-10-01' AND dp_time < '2015-09-01';
DP010 at 71: the range of dp_time is empty
hint: It must end after it starts.;

SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '7 days' GROUP BY TUMBLE(dp_time, INTERVAL '7 days');
DP010 at 34: TUMBLE and HOP state the window already
hint: Leave the condition on dp_time out.;

SELECT count(*) FROM cases GROUP BY TUMBLE(onset, INTERVAL '7 days');
DP010 at 44: TUMBLE works on dp_time, the time of a mutation
hint: Write TUMBLE(dp_time, INTERVAL '1 day').;

SELECT count(*) FROM cases GROUP BY TUMBLE(dp_time);
DP010 at 37: TUMBLE has other arguments than these
hint: Write TUMBLE(dp_time, INTERVAL '1 day').;

SELECT count(*) FROM cases GROUP BY TUMBLE(dp_time, '7 days');
DP010 at 53: an interval is expected here
hint: Write it like INTERVAL '14 days'.;

SELECT count(*) FROM cases GROUP BY HOP(dp_time, INTERVAL '7 days');
DP010 at 37: HOP has other arguments than these
hint: Write HOP(dp_time, INTERVAL '1 day', INTERVAL '14 days').;

SELECT TUMBLE(dp_time, INTERVAL '1 day'), count(*) FROM cases GROUP BY TUMBLE(dp_time, INTERVAL '7 days');
DP010 at 8: TUMBLE or HOP after SELECT must also stand in GROUP BY;

SELECT count(*) FROM cases GROUP BY TUMBLE(dp_time, INTERVAL '7 days'), HOP(dp_time, INTERVAL '1 day', INTERVAL '7 days');
DP010 at 73: only one TUMBLE or HOP is possible;

SELECT count(*) FROM cases WHERE TUMBLE(dp_time, INTERVAL '7 days');
DP010 at 34: TUMBLE and HOP belong into GROUP BY;

# --- periods, windows and measures that do not fit the table's tick
SELECT count(*) FROM cases;
DP001: it is not said how often to publish
hint: Add every => '1 day'.;

-- every: 1 hour
SELECT count(*) FROM cases;
DP001: the period of 1 hour cannot be counted in ticks of 1 day
hint: Track the table with a tick of hours, like tick => '1 hour'.;

-- every: 24 hours
SELECT count(*) FROM cases;
DP001: the period of 24 hours cannot be counted in ticks of 1 day
hint: Write '1 day'.;

-- every: 1 day
SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '36 hours';
DP001: the window of 36 hours cannot be counted in ticks of 1 day
hint: Track the table with a tick of hours, like tick => '1 hour'.;

-- every: 1 day
SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 month';
DP001: the window of 1 month cannot be counted in ticks of 1 day
hint: Months are of unequal length: write days, or track the table with tick => '1 month'.;

-- every: 3 months
SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '4 months';
DP001: a window of 4 months is not a whole number of periods
hint: Periods last 3 months: use a multiple, or days.;

-- every: 1 month
SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '3 months' AND dp_time <= now() - INTERVAL '2 days';
DP001: a window of calendar months cannot be aged
hint: Write its bounds in days, or track the table with tick => '1 month'.;

-- every: 1 month
SELECT count(*) FROM cases WHERE dp_time <= now() - INTERVAL '2 days';
DP001: a running total by calendar months cannot be aged by days
hint: Publish every so many days, or track by months.;

-- every: 1 month
-- start: 5700
SELECT count(*) FROM cases;
DP001: a release by months starts on the first of a month
hint: Move the start, or publish every so many days.;

-- tick: 7 days
-- every: 10 days
SELECT count(*) FROM cases;
DP001: the period of 10 days is not a multiple of the tick of 7 days
hint: The nearest whole lengths are 7 days and 14 days.;

-- tick: 7 days
-- every: 7 days
SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '10 days';
DP001: the window of 10 days is not a multiple of the tick of 7 days
hint: The nearest whole lengths are 7 days and 14 days.;

-- tick: 1 hour
-- every: 1 day
SELECT count(*) FROM cases;
DP001: the period of 1 day cannot be counted in ticks of 1 hour
hint: A local day may last 23 or 25 hours: write '24 hours'.;

-- tick: 1 month
-- every: 1 month
SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '30 days';
DP001: the window of 30 days cannot be counted in ticks of 1 month
hint: Write months, or track the table with tick => '1 day'.;

-- every: 7 days
SELECT count(*) FROM cases GROUP BY TUMBLE(dp_time, INTERVAL '1 day');
DP001: every => '7 days' contradicts the 1 day of the declaration
hint: Leave every out.;

-- every: 1 day
-- measure: state
SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '14 days';
DP001: state has no lower bound: it depends on everything since the beginning
hint: Leave dp_time out for the present state, or use measure => 'net', 'entered' or 'left'.;

-- every: 1 day
-- measure: average
SELECT count(*) FROM cases;
DP001: measure must be state, net, entered or left;

-- every: 1 day
-- boundary 2015-09-01: 5719
-- boundary 2015-10-01: 5749
SELECT count(*) FROM cases WHERE dp_time > '2015-09-01' AND dp_time < '2015-10-01';
DP001: a fixed range has one answer
hint: Leave every and horizon out, or let the range move with now().;

-- every: 1 day
-- start: 5700
-- boundary 2015-09-01: 5719
SELECT count(*) FROM cases WHERE dp_time > '2015-09-01';
DP001: start contradicts the lower bound of dp_time
hint: Leave start out.;

-- tick: 1 second
-- every: 1 second
SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '24 hours';
DP001: a window may last at most 4096 periods
hint: Publish less often, or ask for a shorter window.;

# --- privacy
-- every: 1 day
-- types: local k3, unconstrained
SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '14 days';
DP021: nothing bounds the loss of entries of type "unconstrained": they may mutate in every period for ever
hint: Add a constraint with dp_add_constraint (max_mutations, active_within or both), or give the release a horizon.;

-- every: 1 day
-- epsilon: 0
SELECT count(*) FROM cases;
DP001: epsilon must be greater than 0 and at most 1000;

-- every: 1 day
-- epsilon: -1
SELECT count(*) FROM cases;
DP001: epsilon must be greater than 0 and at most 1000;

-- every: 1 day
-- epsilon: 1001
SELECT count(*) FROM cases;
DP001: epsilon must be greater than 0 and at most 1000;

-- every: 1 day
-- epsilon: 1/1000000000000000
SELECT count(*) FROM cases;
DP001: epsilon is too small to be counted
hint: Ask for more than 0.000001.;

-- every: 1 day
-- horizon: 0
SELECT count(*) FROM cases;
DP001: horizon must lie between 1 and 100000 periods;

-- every: 1 day
-- horizon: 1000000
SELECT count(*) FROM cases;
DP001: horizon must lie between 1 and 100000 periods;

-- every: 1 day
-- horizon: 30000
SELECT count(*) FROM cases;
DP001: with Laplace noise the horizon must lie between 1 and 20000 periods
hint: With Gaussian noise (delta > 0), of which few numbers need to be kept, a total may have 100000.;

-- every: 1 day
-- horizon: 30000
-- delta: 1/1000000
SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '7 days';
DP001: horizon must lie between 1 and 20000 periods;

-- every: 1 day
-- max_error: 10
-- epsilon: 1
SELECT count(*) FROM cases;
DP001: max_error of 10 needs an epsilon of 30.7043, above the 1 allowed
hint: Allow a larger error, or a larger epsilon.;

-- every: 1 day
-- max_error: 0
SELECT count(*) FROM cases;
DP001: max_error must be greater than 0;

-- boundary 2015-09-01: 5719
-- types: unconstrained
-- measure: entered
SELECT count(*) FROM cases WHERE dp_time < '2015-09-01';
DP021: entries of type "unconstrained" may mutate for ever, and nothing bounds their loss from a count of entered entries since the beginning
hint: Limit them with dp_add_constraint (max_mutations or active_within).;

# --- what belongs elsewhere
SELECT count(*) FROM cases WHERE seen > now();
DP010 at 41: the current time can only limit dp_time
hint: The state of an entry would change without a mutation: limit dp_time, the time of its mutations, and not a column.;

SELECT count(*) FROM cases WHERE seen > now() - INTERVAL '1 day';
DP010 at 41: the current time can only limit dp_time
hint: The state of an entry would change without a mutation: limit dp_time, the time of its mutations, and not a column.;

SELECT count(*) FROM cases WHERE age > score - 1;
DP010 at 40: arithmetic is not allowed
hint: Compare the column itself with a literal.;

SELECT count(*) FROM cases WHERE seen > current_timestamp;
DP010 at 34: the current time can only limit dp_time
hint: The state of an entry would change without a mutation: limit dp_time, the time of its mutations, and not a column.;

SELECT count(*) FROM cases WHERE count(*) > 10;
DP010 at 34: count(*) and other figures belong into the list after SELECT, and only there;

SELECT count(*) FROM cases WHERE lower(dp_time) = 'a';
DP010 at 34: dp_time can only be bounded by <, <=, >, >= or BETWEEN
hint: Write dp_time > now() - INTERVAL '14 days', or two fixed times: dp_time >= '2015-09-01' AND dp_time < '2015-10-01'.;

SELECT photo, count(*) FROM cases GROUP BY photo;
DP010 at 44: values of type pg_catalog.point cannot be grouped;

# --- names
SELECT count(*) FROM cases WHERE Statut = 'a';
DP010 at 34: there is no tracked column statut
hint: Tracked columns: Kreis, address, age, amount, county, id, imported, noted, onset, photo, score, seen, serotype, status, stay, token, user, vaccinated, 縣市.;

SELECT count(*) FROM cases WHERE status = confirmed;
DP010 at 43: there is no tracked column confirmed
hint: Tracked columns: Kreis, address, age, amount, county, id, imported, noted, onset, photo, score, seen, serotype, status, stay, token, user, vaccinated, 縣市. A text is written in single quotes.;

SELECT county, nowhere, count(*) FROM cases GROUP BY county, nowhere;
DP010 at 62: there is no tracked column nowhere
hint: Tracked columns: Kreis, address, age, amount, county, id, imported, noted, onset, photo, score, seen, serotype, status, stay, token, user, vaccinated, 縣市.;

SELECT count(*) FROM cases WHERE public.cases.status = 'a';
DP010 at 34: this name has too many parts
hint: Write schema.table for a table, and column or table.column for a column.;

SELECT count(*) FROM cases WHERE other.status = 'a';
DP010 at 34: this column belongs to no table of the text
hint: The table goes by cases here.;

SELECT count(*) FROM cases WHERE;
DP010 at 28: this is not understood as SQL
hint: A comma, an operator or a keyword may be missing or out of place near here.;

SELECT count(*) FROM cases WHERE status = 'a' status;
DP010 at 47: this is not understood as SQL
hint: A comma, an operator or a keyword may be missing or out of place near here.;

SELECT FROM cases;
DP010 at 13: count(*) is missing
hint: Write SELECT county, count(*) with the columns of GROUP BY before it.;

SELECT count(*) FROM cases WHERE status = 'unclosed;
DP010 at 43: a quote or a comment is not closed;

# --- quantiles
SELECT percentile_disc(0.5) FROM cases;
DP010 at 8: WITHIN GROUP is missing behind percentile_disc()
hint: Write percentile_disc(0.5) WITHIN GROUP (ORDER BY age), or dp_bounds(age, 0, 100, 5) for bounds and grid of its own.;

SELECT percentile_disc(0) WITHIN GROUP (ORDER BY dp_bounds(age, 0, 100, 5)) FROM cases;
DP010 at 24: the fraction of a quantile lies between 0 and 1
hint: The smallest and the largest value are decided by one entry alone: take 0.01 or 0.99.;

SELECT percentile_disc(1) WITHIN GROUP (ORDER BY dp_bounds(age, 0, 100, 5)) FROM cases;
DP010 at 24: the fraction of a quantile lies between 0 and 1
hint: The smallest and the largest value are decided by one entry alone: take 0.01 or 0.99.;

SELECT percentile_disc(1.5) WITHIN GROUP (ORDER BY dp_bounds(age, 0, 100, 5)) FROM cases;
DP010 at 24: the fraction of a quantile lies between 0 and 1;

SELECT percentile_disc(0.1234567) WITHIN GROUP (ORDER BY dp_bounds(age, 0, 100, 5)) FROM cases;
DP010 at 24: the fraction of a quantile has at most 6 digits after the point;

SELECT percentile_disc(NULL) WITHIN GROUP (ORDER BY dp_bounds(age, 0, 100, 5)) FROM cases;
DP010 at 8: a number is expected here
hint: Write it in digits, without quotes.;

SELECT percentile_disc('0.5') WITHIN GROUP (ORDER BY dp_bounds(age, 0, 100, 5)) FROM cases;
DP010 at 24: a number is expected here
hint: Write it in digits, without quotes.;

SELECT percentile_disc(ARRAY[0.5, 0.5]) WITHIN GROUP (ORDER BY dp_bounds(age, 0, 100, 5)) FROM cases;
DP010 at 8: two figures are named percentile_disc_50
hint: Give each a name: count(*) AS n.;

SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY dp_bounds(age, 0, 100, 5)), percentile_disc(0.9) WITHIN GROUP (ORDER BY dp_bounds(age, 0, 100, 5)) FROM cases;
DP010 at 80: two figures are named percentile_disc
hint: Give each a name: count(*) AS n.;

SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY age DESC) FROM cases;
DP010 at 56: the order and number of rows cannot be chosen
hint: Leave it out: a release publishes every group; order the release table when you read it.;

SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY age, id) FROM cases;
DP010 at 57: quantiles are those of one column, in ascending order
hint: Write percentile_disc(0.5) WITHIN GROUP (ORDER BY age), or dp_bounds(age, 0, 100, 5) for bounds and grid of its own.;

-- every: 1 day
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY age) FROM cases;
DP010 at 52: column age has no bounds, so that a quantile of it could lie anywhere
hint: SELECT dp_bounds('cases', 'age', low, high); values beyond are counted as the nearer bound.;

SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY county) FROM cases;
DP010 at 52: percentile_disc() needs a column of numbers, and county is of type pg_catalog.varchar
hint: Count entries instead: count(*) FILTER (WHERE condition).;

SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY dp_bounds(county, 0, 1, 1)) FROM cases;
DP010 at 62: percentile_disc() needs a column of numbers, and county is of type pg_catalog.varchar
hint: Count entries instead: count(*) FILTER (WHERE condition).;

SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY dp_bounds(age, 0, 100)) FROM cases;
DP010 at 52: dp_bounds() has other arguments than these
hint: Write percentile_disc(0.5) WITHIN GROUP (ORDER BY age), or dp_bounds(age, 0, 100, 5) for bounds and grid of its own.;

SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY dp_bounds(age, 0, 100, 3)) FROM cases;
DP010 at 52: low and high must be multiples of the grid
hint: Values are rounded to multiples of the grid.;

SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY dp_bounds(age, 0, 100, 0)) FROM cases;
DP010 at 52: low must be below high, and the grid above 0
hint: Write percentile_disc(0.5) WITHIN GROUP (ORDER BY age), or dp_bounds(age, 0, 100, 5) for bounds and grid of its own.;

SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY dp_bounds(age, 100, 0, 5)) FROM cases;
DP010 at 52: low must be below high, and the grid above 0
hint: Write percentile_disc(0.5) WITHIN GROUP (ORDER BY age), or dp_bounds(age, 0, 100, 5) for bounds and grid of its own.;

SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY dp_bounds(age, 0, 5000, 1)) FROM cases;
DP010 at 52: the grid has more than 4096 values between the bounds
hint: Give quantiles a coarser one: ORDER BY dp_bounds(age, 0, 100, 5).;

SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY age + 1) FROM cases;
DP010 at 56: arithmetic is not allowed
hint: Compare the column itself with a literal, and dp_time with now() - INTERVAL '14 days'; compute with figures when you read them.;

SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY lower(county)) FROM cases;
DP010 at 52: percentile_disc() orders by a column
hint: Write percentile_disc(0.5) WITHIN GROUP (ORDER BY age), or dp_bounds(age, 0, 100, 5) for bounds and grid of its own.;

SELECT percentile_disc(0.5) OVER () FROM cases;
DP010 at 29: window functions are not allowed
hint: Write count(*), sum(column) and GROUP BY.;

SELECT count(*) WITHIN GROUP (ORDER BY age) FROM cases;
DP010 at 8: count(*) and other figures belong into the list after SELECT, and only there;

SELECT count(*) FROM cases ORDER BY dp_bounds(age, 0, 100, 5);
DP010 at 28: the order and number of rows cannot be chosen
hint: Leave it out: a release publishes every group; order the release table when you read it.;

SELECT dp_bounds(age, 0, 100, 5), count(*) FROM cases GROUP BY 1;
DP010 at 8: the function dp_bounds() is not allowed
hint: Only lower(column) and upper(column) can be called: any other could fail, change or run code of its own.;

SELECT count(*) FROM cases WHERE percentile_disc(0.5) WITHIN GROUP (ORDER BY dp_bounds(age, 0, 100, 5)) = 3;
DP010 at 34: figures belong into the list after SELECT, and only there;

SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY dp_bounds(age, 0, 100, 5)) FILTER (WHERE dp_time > now() - INTERVAL '7 days') AS m FROM cases;
DP010 at 8: a quantile has the window of WHERE
hint: Declare it as a release of its own.;

SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY dp_bounds(age, 0, 100, 5)) FROM cases;
DP010 at 8: percentile_cont() is not available: it lies between two entries' values, and one entry can move it from any value to any other
hint: Quantiles are read from noisy counts: percentile_disc(0.5) WITHIN GROUP (ORDER BY dp_bounds(age, 0, 100, 5)) AS median.;

SELECT max(age) FROM cases;
DP010 at 8: max() cannot be released: one entry alone decides it, so that its noise would have to be as wide as the column
hint: Count beyond limits of your own: count(*) FILTER (WHERE age >= 90) AS over_90.;

SELECT count(DISTINCT age) FROM cases;
DP010 at 8: the number of distinct values cannot be released: one entry decides whether a value occurs, as often as others with that value come and go
hint: Count entries with count(DISTINCT id), or group by the column, with its values as public keys.;

-- every: 1 day
-- max_error: 5
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY dp_bounds(age, 0, 100, 5)) FROM cases;
DP001: max_error is not for quantiles: what they err in is rank, which depends on many counts
hint: Give epsilon; the notes of dp_plan_release show the rank error.;

-- every: 1 day
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY dp_bounds(age, 0, 100, 5)) FROM cases WHERE dp_time > now() - INTERVAL '1 day';
DP010 at 8: percentile_disc() of changes means nothing: measure net sums what came less what went
hint: Use measure => 'entered' for those who came in the window, 'left' for those who went, or 'state' without a window.;
