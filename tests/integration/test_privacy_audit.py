"""What an attacker proves from published figures stays below the claim, and would not if the noise were too small."""

import pytest

from dbext.control.experiments import KINDS, audit
from dbext.control.single_draws import hierarchy, question, reports

#: A claim that holds is called broken with a chance of 1e-10 at most. So many runs could prove 2.4 with that confidence.
RUNS, CONFIDENCE = 600, 1 - 1e-10
PURE = [kind for kind in KINDS if not kind.gaussian]
ROWS, PEOPLE = (next(kind for kind in KINDS if kind.rows and ("DISTINCT" in kind.declaration) == distinct) for distinct in (False, True))
BUFFERS = next(kind for kind in KINDS if kind.gaussian)


@pytest.fixture
def pair(database, cluster, open_database):
    return database.connect(), open_database(cluster).connect()


def too_little_noise(connection):
    """Publish with a sixteenth of the noise that the plan promised and the ledger charged."""
    connection.execute("UPDATE dbext_private.release SET plan = jsonb_set(plan, '{plan,noise,scale}', '\"1/8\"')")


def too_little_gaussian_noise(connection):
    """Publish with a twentieth of its deviation."""
    connection.execute(
        "UPDATE dbext_private.release SET plan = jsonb_set(plan, '{plan,noise,sigma_squared}',"
        " to_jsonb(div((plan #>> '{plan,noise,sigma_squared}')::numeric, 400)::text))"
    )


def more_rows_than_are_priced(connection):
    """Let all rows of a unit count, as if nothing held them to the number that noise was made for."""
    connection.execute("UPDATE dbext_private.tracked_table SET rows_per_unit = 100")


@pytest.mark.parametrize("kind", PURE[::2], ids=lambda kind: f"{kind.name}, {kind.limits}")
def test_no_more_than_the_claim_is_proven(pair, kind):
    finding = audit(*pair, kind, runs=RUNS, epsilon=1.5, confidence=CONFIDENCE)
    assert 1.4999 < finding.claimed <= 1.5
    assert finding.proven <= finding.claimed


def test_the_audit_would_notice_too_little_noise(pair):
    finding = audit(*pair, KINDS[0], runs=RUNS, epsilon=0.5, confidence=CONFIDENCE, harm=too_little_noise)
    assert finding.proven > finding.claimed == 0.5


@pytest.mark.parametrize(("kind", "harm"), [(ROWS, too_little_noise), (ROWS, more_rows_than_are_priced), (PEOPLE, too_little_noise)])
def test_the_audit_would_notice_units_that_add_more_than_is_priced(pair, kind, harm):
    finding = audit(*pair, kind, runs=RUNS, epsilon=1, confidence=CONFIDENCE, harm=harm)
    assert finding.proven > finding.claimed == 1


def test_gaussian_noise_of_a_concentrated_budget(pair):
    finding = audit(*pair, KINDS[0], runs=3 * RUNS, epsilon=8, delta=1e-6, confidence=CONFIDENCE)
    assert (finding.figure, finding.delta) == ("mu", 1e-6)
    assert 0 < finding.proven <= finding.claimed


@pytest.mark.parametrize(("harm", "holds"), [(None, True), (too_little_gaussian_noise, False)], ids=["as planned", "too little noise"])
def test_noise_made_from_buffers(pair, harm, holds):
    finding = audit(*pair, BUFFERS, runs=RUNS, epsilon=4, delta=1e-6, confidence=CONFIDENCE, harm=harm)
    assert (finding.mechanism, finding.figure, finding.holds) == ("buffered", "mu", holds)


def test_questions_too(pair):
    """An answer is not exact with a chance of 4e-9: sixteen tell the two databases apart, though so few prove 0.5 and no more."""
    finding = question(*pair, runs=16, epsilon=20.0, confidence=0.95)
    assert 0.5 < finding.proven <= finding.claimed


@pytest.mark.parametrize("single", [hierarchy, reports])
def test_what_single_draws_prove(pair, single):
    """Nodes prove 1.6 and reports 0.7, both with a deviation below 0.14."""
    finding = single(*pair, runs=3000, epsilon=4.0, confidence=CONFIDENCE)
    assert finding.claimed == 4.0
    assert 0 < finding.proven <= finding.claimed
