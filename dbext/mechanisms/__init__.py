"""Randomised algorithms: what is noised, when, how it is put together again, and how large the error is. Pure.

Read it in this order:

- `protocol`: what every mechanism that noises time ranges offers; `independent`, `disjoint`, `hierarchical`, `plain_sums`, `binary_tree`,
  `least_squares_tree` (over `honaker`), `signed_tree` (`divided_tree` says how it divides the budget), `levelled`. Running totals share
  `totals` and go on in `epochs`.
- `encoded`: what a mechanism offers that noises whole-number combinations of time ranges; `square_root`, `weighted_square_root`,
  `sliding_root`, `shared_windows`; `joint_bounds` turns what they prove about an entry's effect into what a charge keeps. The proofs are
  in `profiles` (finite horizons) and `stationary` (endless), over `toeplitz`, `gram`, `alternating`, `same_sign`, `dense_paths`, `minimax`.
- `buffered` (over `buffers`, `buffered_table`): totals whose noise is made step by step from a small state; `storage`: what each keeps.
- `encoding`: exact encoder rows and answers from stored ones; `spread`: how much noise the answers of all periods hold.
- `registry`: mechanisms by the tag they are stored with.
- `sampling`: the only source of noise. Each law has two forms of one algorithm, for few draws and for many: `sampling_plain` and
  `sampling_wide` (discrete Laplace), `gaussian_plain` and `gaussian_wide` (rounded Gaussian).
- `assemble`, `ranges`, `restate`: any range, and the whole history, from what has been published.
- `error`: variances and 95% intervals; `simultaneous`: intervals that hold at every time together.
- `unequal_budgets`, `tree_paths`: other trees, to compare with; `randomised_response`: the local model.
"""
