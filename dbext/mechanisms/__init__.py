"""Randomised algorithms: what is noised, when, how it is put together again, and how large the error is. Pure.

Read it in this order: `protocol` (what every mechanism offers), `independent`, `disjoint`, `binary_tree`, `registry`, `sampling` (the only
source of noise; `sampling_plain` and `sampling_wide` hold the two forms of the same algorithms), `error`.
"""
