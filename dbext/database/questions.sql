-- name: remembered
-- The most exact stored answer to a question that cost at least this much; with the noise asked for, if any: at a price in epsilon, or Gaussian.
SELECT q.question_id, q.answer, q.epsilon::text AS epsilon, q.noise::text AS noise
FROM dbext_private.question AS q
WHERE q.table_id = $1::integer AND q.first_tick IS NOT DISTINCT FROM $2::bigint AND q.last_tick = $3::bigint
    AND q.measure = $4::text AND q.predicate = $5::text AND q.term = $6::text AND q.epsilon >= $7::numeric
    AND ($8::text IS NULL OR $8::text = 'laplace' AND q.pure OR $8::text = 'gaussian' AND q.noise ->> 'kind' = 'rounded_gaussian')
ORDER BY q.epsilon DESC, q.pure DESC, q.question_id
LIMIT 1

-- name: remember
-- Store an answer.
INSERT INTO dbext_private.question (table_id, first_tick, last_tick, measure, predicate, term, epsilon, answer, noise, pure, asked_by)
VALUES ($1::integer, $2::bigint, $3::bigint, $4::text, $5::text, $6::text, $7::numeric, $8::bigint, $9::jsonb, $10::boolean, $11::text)
RETURNING question_id
