"""What an attacker proves from published figures stays below the claim, and would not if the noise were too small."""

import pytest

from dbext.control.experiments import KINDS, audit
from dbext.control.single_draws import hierarchy, question, reports

RUNS, CONFIDENCE = 120, 0.9999


@pytest.fixture
def pair(database, cluster, open_database):
    return database.connect(), open_database(cluster).connect()


def too_little_noise(connection):
    """Publish with a sixteenth of the noise that the plan promised and the ledger charged."""
    connection.execute("UPDATE dbext_private.release SET plan = jsonb_set(plan, '{plan,noise,scale}', '\"1/8\"')")


@pytest.mark.parametrize("kind", KINDS[::2], ids=lambda kind: f"{kind.name}, {kind.limits}")
def test_no_more_than_the_claim_is_proven(pair, kind):
    finding = audit(*pair, kind, runs=RUNS, epsilon=1.5, confidence=CONFIDENCE)
    assert 1.4999 < finding.claimed <= 1.5
    assert finding.proven <= finding.claimed


def test_the_audit_would_notice_too_little_noise(pair):
    finding = audit(*pair, KINDS[0], runs=RUNS, epsilon=0.5, confidence=CONFIDENCE, harm=too_little_noise)
    assert finding.proven > finding.claimed == 0.5


def test_gaussian_noise_of_a_concentrated_budget(pair):
    finding = audit(*pair, KINDS[0], runs=4 * RUNS, epsilon=8, delta=1e-6, confidence=CONFIDENCE)
    assert (finding.figure, finding.delta) == ("mu", 1e-6)
    assert 0 < finding.proven <= finding.claimed


def test_questions_too(pair):
    finding = question(*pair, runs=16, epsilon=8.0, confidence=0.95)
    assert 0 < finding.proven <= finding.claimed


@pytest.mark.parametrize("single", [hierarchy, reports])
def test_what_single_draws_prove(pair, single):
    finding = single(*pair, runs=800, epsilon=4.0, confidence=CONFIDENCE)
    assert finding.claimed == 4.0
    assert 0.5 < finding.proven <= finding.claimed
