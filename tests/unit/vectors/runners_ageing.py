"""Vectors of age-dependent loss on the symmetric chain of two states."""

from __future__ import annotations

from dbext.privacy.ageing import Publication, aged, epsilon_for_peak, largest_bounded_epsilon, losses_at_inputs, outlook
from dbext.privacy.ageing_exact import attack_accuracy, repeated_report_losses, single_report_loss
from dbext.privacy.markov import Chain, two_states
from tests.unit.vectors.registry import runner


def chain(inputs) -> Chain:
    return two_states(inputs["flip"], inputs["flip"])


@runner("age_single_query_two_state")
def _(inputs):
    return [aged(inputs["eps_C"], chain(inputs).delta(age)) for age in inputs["t"]]


@runner("age_single_query_two_state_exact_chain")
def _(inputs):
    return [single_report_loss(chain(inputs), inputs["eps_C"], age) for age in inputs["t"]]


@runner("billionaire_attack_accuracy_exact")
def _(inputs):
    return [attack_accuracy(chain(inputs), inputs["eps"], age) for age in inputs["t"]]


@runner("billionaire_attack_accuracy_t_plus_1")
def _(inputs):
    return [attack_accuracy(chain(inputs), inputs["eps"], age + 1) for age in inputs["t"]]


@runner("age_multi_query_spacing2_age0_eps0.5")
def _(inputs):
    """The risk at each publication: the loss about the input's status, aged by the release's own age."""
    spacing, age, memory = inputs["spacing"], inputs["age"], chain(inputs).delta
    publications = [Publication(n * spacing - age, n * spacing, inputs["eps_C"]) for n in range(inputs["n"])]
    return [aged(loss, memory(age)) for _, loss in losses_at_inputs(publications, memory)]


@runner("age_multi_query_limit_spacing2_age1_eps0.3")
def _(inputs):
    return outlook(inputs["spacing"], inputs["age"], inputs["eps_C"], chain(inputs).delta).peak


@runner("age_bounded_condition_max_eps")
def _(inputs):
    return [largest_bounded_epsilon(spacing, chain(inputs).delta) for spacing in inputs["spacing"]]


@runner("age_max_epsC_for_peak")
def _(inputs):
    return epsilon_for_peak(inputs["target_peak"], inputs["age"], inputs["spacing"], chain(inputs).delta)


@runner("age_exact_leakage_repeated_RR")
def _(inputs):
    losses = repeated_report_losses(chain(inputs), inputs["eps_C"], inputs["spacing"], max(inputs["n"]))
    return [losses[n - 1] for n in inputs["n"]]
