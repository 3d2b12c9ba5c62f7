"""What is promised and what it costs. Pure: no table, no clock, no randomness.

Read it in this order: `pico` (what losses are counted in), `constraint`, `measure`, `noise`, `grid`, `pattern`, `joint`, `charge` (what one
release does), `cells` and `coverage` (the worst entry against a set of filters: `coverage_tiled` and `coverage_nested` without a search,
`coverage_plain` and `coverage_wide`; `coverage_joint` and `coverage_within` under both limits), `priced`, `steady` (releases that never
end), `accountant` (the whole figure), `gaussian` (over `normal`) and `conversion` (what a budget holds of rho and of epsilon), `loss` (what
charges cost together), `calibrate` (noise for a price). `profile` holds what joint mechanisms prove about an entry's effect.
Beside the ledger: `repeated_laplace` and `audit_bound` (second opinions), `key_checks`, `local_model`, and ageing (`markov`, `ageing`,
`ageing_plan`, `ageing_exact`).

| name in code | symbol | meaning |
|---|---|---|
| `max_mutations` | k | mutations in an entry's life |
| `active_within` | w | ticks between an entry's first and last mutation |
| `start`, `end` | (a, b] | a time-range filter: ticks a+1 to b |
| `scale` | b | of discrete Laplace noise, P(X = x) proportional to exp(-abs(x) / b) |
| `sigma_squared` | sigma^2 | of rounded Gaussian noise, the nearest whole number to a draw from N(0, sigma^2) |
| `opening`, `later` | | cost of a filter that holds an entry's first (or last) mutation; of one that holds others only |
"""
