# Predicates and their canonical text: what a question is remembered by.
status = 'confirmed';
status = 'confirmed';

'confirmed' = Status AND "imported";
imported AND status = 'confirmed';

status IN ('b', 'a', 'b') OR status = 'c';
status IN ('a', 'b', 'c');

NOT (status = 'a' OR age BETWEEN 18 AND 65);
(age < 18 OR age > 65) AND status <> 'a';

NOT imported = true AND vaccinated IS TRUE;
NOT imported AND vaccinated;

(imported IS NOT FALSE) OR NOT (vaccinated IS UNKNOWN);
(NOT imported) IS NOT TRUE OR vaccinated IS NOT NULL;

age >= '018' AND age < 65.0 AND age <> 1e1 AND age <> - 3;
age < 65 AND age >= 18 AND age NOT IN (-3, 10);

amount IN (1.50, 15e-1, 2) AND amount < 123456789012345678901234567890.10;
amount < 123456789012345678901234567890.1 AND amount IN (1.5, 2);

lower(status) LIKE 'con%' AND status NOT LIKE '%\_x' AND upper(county) = 'TAINAN';
lower(status) LIKE 'con%' AND status NOT LIKE '%\_x' AND upper(county) = 'TAINAN';

onset BETWEEN '2015-09-01' AND DATE '2015-09-30' AND onset <> 'infinity';
onset <= '2015-09-30' AND onset <> 'infinity' AND onset >= '2015-09-01';

seen >= '2015-09-01T00:00:00+08:00' AND noted < TIMESTAMP '2015-09-01 12:30';
noted < '2015-09-01 12:30:00' AND seen >= '2015-08-31 16:00:00+00';

token = '{A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11}' OR address = '10.0.0.0/8';
address = '10.0.0.0/8' OR token = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11';

"Kreis" = 'Mitte' AND "user" IS NOT NULL AND 縣市 = '台南市';
"Kreis" = 'Mitte' AND "user" IS NOT NULL AND "縣市" = '台南市';

status = "user" OR lower("Kreis") <> lower(status);
"user" = status OR lower("Kreis") <> lower(status);

status = 'it''s' /* a comment /* nested */ */ -- and another
   AND score > .5;
score > 0.5 AND status = 'it''s';

serotype IN ('DENV-1', 'DENV-2') AND stay IS NOT NULL AND photo IS NULL;
photo IS NULL AND serotype IN ('DENV-1', 'DENV-2') AND stay IS NOT NULL;

imported AND (vaccinated AND (age = 1 AND (imported)));
age = 1 AND imported AND vaccinated;

(imported OR vaccinated) AND (vaccinated OR imported);
imported OR vaccinated;
