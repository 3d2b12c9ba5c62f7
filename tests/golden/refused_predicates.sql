# Predicates that are refused, each with its exact message.
status = pg_sleep(10);
DP010 at 10: the function pg_sleep() is not allowed
hint: Only lower(column) and upper(column) can be called: any other could fail, change or run code of its own.;

status = (SELECT secret FROM other);
DP010 at 11: subqueries are not allowed
hint: Write the condition over the columns of the tracked table alone.;

lower(status COLLATE "C") = 'a';
DP010 at 14: COLLATE is not allowed
hint: Columns compare by their own collation.;

upper((status)) = lower('A');
DP010 at 19: lower() takes a column
hint: Write a constant as it should be.;

status OPERATOR(pg_catalog.=) 'a';
DP010 at 8: the function operator() is not allowed
hint: Only lower(column) and upper(column) can be called: any other could fail, change or run code of its own.;

status = any ('{a,b}');
DP010 at 10: the function any() is not allowed
hint: Write the condition over the columns of the tracked table alone.;

status similar to '(a|b)*';
DP010 at 8: only LIKE and NOT LIKE match patterns here
hint: For matching without case write lower(column) LIKE 'pattern'.;

status ~* '^(a+)+$';
DP010 at 8: regular expressions are not allowed: they can take unbounded time
hint: Write LIKE 'pattern%', with lower(column) for matching without case.;

status @@ 'x';
DP010 at 8: @@ is not allowed;

age % 2 = 0;
DP010 at 5: arithmetic is not allowed
hint: Compare the column itself with a literal, and dp_time with now() - INTERVAL '14 days'; compute with figures when you read them.;

age / 0 = 1;
DP010 at 5: arithmetic is not allowed
hint: Compare the column itself with a literal, and dp_time with now() - INTERVAL '14 days'; compute with figures when you read them.;

-age = 1;
DP010 at 2: a minus sign is only allowed before a number;

age = 1 + 1;
DP010 at 9: arithmetic is not allowed
hint: Compare the column itself with a literal, and dp_time with now() - INTERVAL '14 days'; compute with figures when you read them.;

onset > current_date - 7;
DP010 at 9: the current time cannot be used on an ordinary column
hint: The state of an entry would change without a mutation: limit dp_time, the time of its mutations, with now().;

onset > now();
DP010 at 9: now() cannot be used here
hint: An entry would change without a mutation. The window of a declaration moves with now(); a question is given its own.;

seen > localtimestamp;
DP010 at 8: the current time cannot be used on an ordinary column
hint: The state of an entry would change without a mutation: limit dp_time, the time of its mutations, with now().;

to_char(onset, 'YYYY') = '2015';
DP010 at 1: the function to_char() is not allowed
hint: Compare the column with literals: >= '2015-09-01' AND < '2015-10-01'. Windows of a release: GROUP BY TUMBLE(dp_time, INTERVAL '1 day').;

extract(year FROM onset) = 2015;
DP010 at 1: the function extract() is not allowed
hint: Compare the column with literals: >= '2015-09-01' AND < '2015-10-01'. Windows of a release: GROUP BY TUMBLE(dp_time, INTERVAL '1 day').;

onset = 'tomorrow';
DP010 at 9: column onset holds dates: write '2015-09-01';

seen = '2015-09-01 12:00';
DP010 at 8: column seen holds instants: without an offset, as in '2015-09-01 12:00+08', it would depend on a session setting;

generate_series(1, 10) = 1;
DP010 at 1: the function generate_series() is not allowed
hint: Only lower(column) and upper(column) can be called: any other could fail, change or run code of its own.;

current_user = 'a';
DP010 at 1: the current user or database cannot be used
hint: Quote the word if it is the name of a column.;

session_user = 'a';
DP010 at 1: the current user or database cannot be used
hint: Quote the word if it is the name of a column.;

xmin = '1';
DP010 at 1: system columns such as xmin are not allowed
hint: Tracked columns: Kreis, address, age, amount, county, id, imported, noted, onset, photo, score, seen, serotype, status, stay, token, user, vaccinated, 縣市.;

tableoid = 1;
DP010 at 1: system columns such as tableoid are not allowed
hint: Tracked columns: Kreis, address, age, amount, county, id, imported, noted, onset, photo, score, seen, serotype, status, stay, token, user, vaccinated, 縣市.;

oid = 1;
DP010 at 1: system columns such as oid are not allowed
hint: Tracked columns: Kreis, address, age, amount, county, id, imported, noted, onset, photo, score, seen, serotype, status, stay, token, user, vaccinated, 縣市.;

status = 'a' UNION SELECT 1;
DP010 at 14: only one plain SELECT can be released
hint: Declare each statistic as a release of its own.;

status = 'a') OR (true;
DP010 at 13: a parenthesis is closed that was not opened;

status = 'a'; DELETE FROM cases;
DP010 at 13: only one statement is allowed;

status = 'a' /* AND imported;
DP010: a quote or a comment is not closed;

status = U&'\0061';
DP010 at 10: only plain strings in single quotes are allowed
hint: Write 'text', doubling a quote inside.;

status = N'a';
DP010 at 10: only plain strings in single quotes are allowed
hint: Write 'text', doubling a quote inside.;

age = 1::int;
DP010 at 8: casts are not allowed
hint: Compare the column itself with a literal: the literal is read as the column's type.;

CAST(age AS text) = '1';
DP010 at 1: the function cast() is not allowed
hint: Compare the column itself with a literal.;

age IN (SELECT 1);
DP010 at 9: subqueries are not allowed
hint: Write the condition over the columns of the tracked table alone.;

(age, status) IN ((1, 'a'));
DP010 at 20: rows of several values cannot be compared
hint: Join one comparison for each column with AND.;

EXISTS (SELECT 1 FROM other);
DP010 at 1: the function exists() is not allowed
hint: Write the condition over the columns of the tracked table alone.;

status IS DISTINCT FROM 'a';
DP010 at 11: DISTINCT is not allowed here
hint: Write count(DISTINCT unit) to count entries; for comparing, use = or <> and IS NULL.;

status LIKE 'a!%' ESCAPE '!';
DP010 at 19: ESCAPE is not allowed
hint: The escape character of a pattern is the backslash.;

status ILIKE 'A%';
DP010 at 8: only LIKE and NOT LIKE match patterns here
hint: For matching without case write lower(column) LIKE 'pattern'.;

status LIKE '%a\';
DP010 at 13: a pattern may not end with its escape character
hint: Write two backslashes for a backslash.;

age LIKE '1';
DP010 at 1: LIKE needs a text column, and age is of type pg_catalog.int4;

status = county;
DP010 at 1: two columns of different types cannot be compared
hint: Compare columns of one type, or a column with a literal.;

age = amount;
DP010 at 1: two columns of different types cannot be compared
hint: Compare columns of one type, or a column with a literal.;

status < "user";
DP010 at 1: two such columns cannot be compared with this operator
hint: Text columns can be compared by = and <>; for an order, compare each with a literal.;

status = 'a' = true;
DP010 at 1: a condition stands where a value is expected
hint: Join conditions with AND, OR and NOT; test one with IS TRUE.;

1 < age < 5;
DP010 at 1: a condition stands where a value is expected
hint: Join conditions with AND, OR and NOT; test one with IS TRUE.;

NOT;
DP010 at 1: this is not understood as SQL
hint: A comma, an operator or a keyword may be missing or out of place near here.;

imported AND;
DP010 at 10: this is not understood as SQL
hint: A comma, an operator or a keyword may be missing or out of place near here.;

AND imported;
DP010 at 5: this is not understood as SQL
hint: A comma, an operator or a keyword may be missing or out of place near here.;

imported imported;
DP010 at 10: this is not understood as SQL
hint: A comma, an operator or a keyword may be missing or out of place near here.;

imported OR OR imported;
DP010 at 13: this is not understood as SQL
hint: A comma, an operator or a keyword may be missing or out of place near here.;

"" = 'a';
DP010 at 1: a quoted name is empty or not closed;

"Status" = 'a';
DP010 at 1: there is no tracked column Status
hint: Tracked columns: Kreis, address, age, amount, county, id, imported, noted, onset, photo, score, seen, serotype, status, stay, token, user, vaccinated, 縣市.;

status.lower = 'a';
DP010 at 1: this column belongs to no table of the text
hint: Name the column alone.;

status = {d '2015-01-01'};
DP010 at 10: { is not allowed;

status = :name;
DP010 at 10: parameters are not allowed
hint: Write the value itself, in quotes.;

status = %s;
DP010 at 10: arithmetic is not allowed
hint: Compare the column itself with a literal, and dp_time with now() - INTERVAL '14 days'; compute with figures when you read them.;

status = $1;
DP010 at 10: parameters are not allowed
hint: Write the value itself, in quotes.;

status = 'a' COLLATE "de_DE";
DP010 at 14: COLLATE is not allowed
hint: Columns compare by their own collation.;

CASE WHEN imported THEN true ELSE false END;
DP010 at 1: CASE is not allowed
hint: Write the condition with AND, OR and NOT.;

count(*) > 1;
DP010 at 1: count() cannot be used here
hint: A condition is about one entry; figures stand after SELECT.;

coalesce(status, 'a') = 'a';
DP010 at 1: the function coalesce() is not allowed
hint: Write IS NULL together with AND and OR.;

length(status) > 3;
DP010 at 1: the function length() is not allowed
hint: Write LIKE with underscores, such as LIKE '___%'.;

status IS JSON;
DP010 at 11: this is not allowed here
hint: Near: JSON;

status = 'a' FETCH FIRST ROW ONLY;
DP010 at 14: the order and number of rows cannot be chosen
hint: Leave it out: a release publishes every group; order the release table when you read it.;

address = DATE '2015-01-01';
DP010 at 16: a date literal does not fit column address of type pg_catalog.inet
hint: Write the string alone.;

serotype = 'DENV-5';
DP010 at 12: column serotype holds labels of public.serotype, and this is not one of them;

stay = '[2015-01-01,2015-02-01)';
DP010 at 8: column stay of type pg_catalog.daterange cannot be compared with a literal
hint: Its text could change meaning with a setting or the clock; only IS NULL and IS NOT NULL are possible here.;

dp_time > '2015-09-01';
DP010 at 1: dp_time cannot be used here
hint: It is the time of a mutation: it limits the window of a declaration, by dp_time > now() - INTERVAL '7 days' in WHERE or by GROUP BY TUMBLE(dp_time, INTERVAL '1 day').;

now() - INTERVAL '1 day' < seen;
DP010 at 9: intervals are not allowed here
hint: Only a declaration has a time range, over dp_time.;

TUMBLE(dp_time, '1 day') = 1;
DP010 at 1: tumble() cannot be used here
hint: TUMBLE belongs into GROUP BY of a declaration.;
