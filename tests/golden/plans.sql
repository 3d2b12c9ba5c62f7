# Declarations and the plans they become. Settings: every, measure, epsilon (1/2), max_error, delta (0), horizon, start (a start of one's own),
# cells (1), first_tick, noise, whole (yes), tick (1 day), types (imported w28, local k3), groups, and `boundary <literal>: <index>`. Boundary 5700 is 2015-08-13.

# --- disjoint: the window is as wide as the period

-- every: 1 day
-- groups: VALUES ('Tainan'), ('Kaohsiung')
SELECT county, count(*) FROM cases WHERE status = 'confirmed' AND dp_time > now() - INTERVAL '1 day' GROUP BY county;
kind: disjoint
measure: net by group
periods: 1 day each from boundary 5700, without end
first window: (5700, 5701], 1 day
mechanism: independent_windows
noise: discrete Laplace of scale 114
error: std 161.2, 95% within 342 in period 1
epsilon: 0.5
loss: imported epsilon 0.5, local epsilon 0.0350877;

-- every: 1 day
-- measure: entered
SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day';
kind: disjoint
measure: entered
periods: 1 day each from boundary 5700, without end
first window: (5700, 5701], 1 day
mechanism: independent_windows
noise: discrete Laplace of scale 30
error: std 42.42, 95% within 90 in period 1
epsilon: 0.5
loss: imported epsilon 0.5, local epsilon 0.0333333;

-- every: 1 day
-- measure: entered
-- delta: 1/1000000
-- groups: VALUES ('Tainan'), ('Kaohsiung')
SELECT county, count(*)
FROM   cases
WHERE  status = 'confirmed' AND dp_time > now() - INTERVAL '1 day'
GROUP  BY county;
kind: disjoint
measure: entered by group
periods: 1 day each from boundary 5700, without end
first window: (5700, 5701], 1 day
mechanism: independent_windows
noise: rounded Gaussian of sigma 31.29
error: std 31.29, 95% within 61 in period 1
epsilon: 0.5
loss: imported rho 0.00765971, local rho 0.000510647;

-- groups: SELECT name FROM county
-- types: local k3
SELECT county, TUMBLE(dp_time, INTERVAL '1 week'), count(*) FROM cases GROUP BY county, TUMBLE(dp_time, INTERVAL '1 week');
kind: disjoint
measure: net by group
periods: 7 days each from boundary 5698, without end
first window: (5698, 5705], 7 days
mechanism: independent_windows
noise: discrete Laplace of scale 8
error: std 11.31, 95% within 24 in period 1
epsilon: 0.5
loss: local epsilon 0.5;

-- every: 7 days
-- start: 5700
-- types: local k3
SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '7 days';
kind: disjoint
measure: net
periods: 7 days each from boundary 5700, without end
first window: (5700, 5707], 7 days
mechanism: independent_windows
noise: discrete Laplace of scale 4
error: std 5.642, 95% within 12 in period 1
epsilon: 0.5
loss: local epsilon 0.5;

-- every: 1 month
-- types: imported w28
SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 month';
kind: disjoint
measure: net
periods: 1 month each from boundary 5689, without end
first window: (5689, 5720], 31 days
mechanism: independent_windows
noise: discrete Laplace of scale 4
error: std 5.642, 95% within 12 in period 1
epsilon: 0.5
loss: imported epsilon 0.5;

-- every: 1 year
-- types: imported w28
SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 year';
kind: disjoint
measure: net
periods: 12 months each from boundary 5477, without end
first window: (5477, 5842], 365 days
mechanism: independent_windows
noise: discrete Laplace of scale 4
error: std 5.642, 95% within 12 in period 1
epsilon: 0.5
loss: imported epsilon 0.5;

-- every: 1 month
-- types: imported w28
SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '14 days';
kind: disjoint
measure: net
periods: 1 month each from boundary 5689, without end
first window: (5706, 5720], 14 days
mechanism: independent_windows
noise: discrete Laplace of scale 4
error: std 5.642, 95% within 12 in period 1
epsilon: 0.5
loss: imported epsilon 0.5;

-- every: 7 days
-- types: local k1
SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '3 days' AND dp_time <= now() - INTERVAL '1 day';
kind: disjoint
measure: net
periods: 7 days each from boundary 5698, without end
first window: (5702, 5704], 2 days, aged 1 day
mechanism: independent_windows
noise: discrete Laplace of scale 2
error: std 2.799, 95% within 6 in period 1
epsilon: 0.5
loss: local epsilon 0.5;

-- every: 1 day
-- horizon: 30
-- types: unconstrained
SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day';
kind: disjoint
measure: net
periods: 1 day each from boundary 5700, 30 in all
first window: (5700, 5701], 1 day
mechanism: independent_windows
noise: discrete Laplace of scale 60
error: std 84.85, 95% within 180 in period 1
epsilon: 0.5
loss: unconstrained epsilon 0.5;

-- every: 1 day
-- first_tick: 5710
-- types: both k3 w28
SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day';
kind: disjoint
measure: net
periods: 1 day each from boundary 5710, without end
first window: (5710, 5711], 1 day
mechanism: independent_windows
noise: discrete Laplace of scale 4
error: std 5.642, 95% within 12 in period 1
epsilon: 0.5
loss: both epsilon 0.5;

-- tick: 1 hour
-- every: 24 hours
-- types: local k3
SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '24:00';
kind: disjoint
measure: net
periods: 24 hours each from boundary 5688, without end
first window: (5688, 5712], 24 hours
mechanism: independent_windows
noise: discrete Laplace of scale 4
error: std 5.642, 95% within 12 in period 1
epsilon: 0.5
loss: local epsilon 0.5;

-- tick: 1 month
-- every: 3 months
-- types: local k3
SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '3 months';
kind: disjoint
measure: net
periods: 3 months each from boundary 5700, without end
first window: (5700, 5703], 3 months
mechanism: independent_windows
noise: discrete Laplace of scale 4
error: std 5.642, 95% within 12 in period 1
epsilon: 0.5
loss: local epsilon 0.5;

# --- sliding: fresh noise for every window, or sums of disjoint blocks, whichever errs less

-- every: 1 day
-- types: local k3
SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '14 days';
kind: sliding
measure: net
periods: 1 day each from boundary 5700, without end
first window: (5687, 5701], 14 days
mechanism: disjoint_sums of 14 periods
noise: discrete Laplace of scale 4
error: std 21.11, 95% within 42 in period 1
epsilon: 0.5
loss: local epsilon 0.5;

-- every: 1 day
-- types: imported w28
SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '14 days';
kind: sliding
measure: net
periods: 1 day each from boundary 5700, without end
first window: (5687, 5701], 14 days
mechanism: independent_windows
noise: discrete Laplace of scale 84
error: std 118.8, 95% within 252 in period 1
epsilon: 0.5
loss: imported epsilon 0.5;

-- every: 1 day
-- types: imported w28
-- delta: 1/1000000
SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '14 days';
kind: sliding
measure: net
periods: 1 day each from boundary 5700, without end
first window: (5687, 5701], 14 days
mechanism: independent_windows
noise: rounded Gaussian of sigma 52.36
error: std 52.36, 95% within 103 in period 1
epsilon: 0.5
loss: imported rho 0.00765971;

-- every: 1 day
-- types: local k3
-- delta: 1/1000000
SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '14 days';
kind: sliding
measure: net
periods: 1 day each from boundary 5700, without end
first window: (5687, 5701], 14 days
mechanism: sliding_root of 14 periods
noise: rounded Gaussian of sigma 1.161e+06 on encoder rows
error: std 24.42, 95% within 47.87 in period 1
epsilon: 0.5
loss: local rho 0.00765971
note: noise => 'laplace' would do with a mean standard error of 21.11 instead of 25.43; its price adds in epsilon, plainly: 4 such releases take epsilon 2, which holds 13 of those in rho;

-- every: 1 day
-- measure: entered
-- groups: SELECT name FROM county
SELECT county, count(*) FROM cases WHERE status = 'confirmed' AND dp_time > now() - INTERVAL '14 days' GROUP BY county;
kind: sliding
measure: entered by group
periods: 1 day each from boundary 5700, without end
first window: (5687, 5701], 14 days
mechanism: disjoint_sums of 14 periods
noise: discrete Laplace of scale 30
error: std 158.7, 95% within 314 in period 1
epsilon: 0.5
loss: imported epsilon 0.5, local epsilon 0.0333333;

-- every: 7 days
-- types: local k3
SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '10 days';
kind: sliding
measure: net
periods: 7 days each from boundary 5698, without end
first window: (5695, 5705], 10 days
mechanism: disjoint_sums of 1 period and 3 ticks more
noise: discrete Laplace of scale 4
error: std 9.772, 95% within 20 in period 1
epsilon: 0.5
loss: local epsilon 0.5;

-- types: local k3
SELECT count(*) FROM cases GROUP BY HOP(dp_time, INTERVAL '1 day', INTERVAL '14 days');
kind: sliding
measure: net
periods: 1 day each from boundary 5700, without end
first window: (5687, 5701], 14 days
mechanism: disjoint_sums of 14 periods
noise: discrete Laplace of scale 4
error: std 21.11, 95% within 42 in period 1
epsilon: 0.5
loss: local epsilon 0.5;

-- every: 1 month
-- types: imported w28
SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '3 months';
kind: sliding
measure: net
periods: 1 month each from boundary 5689, without end
first window: (5628, 5720], 92 days
mechanism: disjoint_sums of 3 periods
noise: discrete Laplace of scale 4
error: std 9.772, 95% within 20 in period 1
epsilon: 0.5
loss: imported epsilon 0.5;

-- every: 1 month
-- types: imported w28
SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '60 days';
kind: sliding
measure: net
periods: 1 month each from boundary 5689, without end
first window: (5660, 5720], 60 days
mechanism: independent_windows
noise: discrete Laplace of scale 6
error: std 8.475, 95% within 18 in period 1
epsilon: 0.5
loss: imported epsilon 0.5;

-- every: 1 day
-- types: local k3
SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '9 days' AND dp_time <= now() - INTERVAL '2 days';
kind: sliding
measure: net
periods: 1 day each from boundary 5700, without end
first window: (5692, 5699], 7 days, aged 2 days
mechanism: disjoint_sums of 7 periods
noise: discrete Laplace of scale 4
error: std 14.93, 95% within 30 in period 1
epsilon: 0.5
loss: local epsilon 0.5;

-- every: 1 day
-- types: local k3
SELECT count(*) FROM cases WHERE dp_time BETWEEN now() - INTERVAL '14 days' AND now();
kind: sliding
measure: net
periods: 1 day each from boundary 5700, without end
first window: (5687, 5701], 14 days
mechanism: disjoint_sums of 14 periods
noise: discrete Laplace of scale 4
error: std 21.11, 95% within 42 in period 1
epsilon: 0.5
loss: local epsilon 0.5
note: dp_time is read as the half-open range (start, end]: a mutation at the instant of a boundary counts in the tick that ends there;

-- every: 1 day
-- types: local k3
SELECT count(*) FROM cases WHERE now() - INTERVAL '2 weeks' < dp_time AND dp_time < current_timestamp;
kind: sliding
measure: net
periods: 1 day each from boundary 5700, without end
first window: (5687, 5701], 14 days
mechanism: disjoint_sums of 14 periods
noise: discrete Laplace of scale 4
error: std 21.11, 95% within 42 in period 1
epsilon: 0.5
loss: local epsilon 0.5
note: dp_time is read as the half-open range (start, end]: a mutation at the instant of a boundary counts in the tick that ends there;

-- every: 1 hour
-- tick: 15 minutes
-- types: local k3
SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '36' HOUR;
kind: sliding
measure: net
periods: 1 hour each from boundary 5700, without end
first window: (5560, 5704], 36 hours
mechanism: disjoint_sums of 36 periods
noise: discrete Laplace of scale 4
error: std 33.85, 95% within 67 in period 1
epsilon: 0.5
loss: local epsilon 0.5;

-- every: 1 day
-- types: free
-- horizon: 365
-- measure: left
SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '7 days';
kind: sliding
measure: left
periods: 1 day each from boundary 5700, 365 in all
first window: (5694, 5701], 7 days
mechanism: disjoint_sums of 7 periods
noise: discrete Laplace of scale 742
error: std 2776, 95% within 5527 in period 1
epsilon: 0.5
loss: free epsilon 0.5;

-- every: 1 day
-- types: local k3
-- max_error: 10
SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '14 days';
kind: sliding
measure: net
periods: 1 day each from boundary 5700, without end
first window: (5687, 5701], 14 days
mechanism: disjoint_sums of 14 periods
noise: discrete Laplace of scale 1.043
error: std 5.313, 95% within 10 in period 1
epsilon: 1.9176
loss: local epsilon 1.9176;

-- every: 1 day
-- types: local k3
-- delta: 1/1000000
-- max_error: 10
-- epsilon: 8
SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '14 days';
kind: sliding
measure: net
periods: 1 day each from boundary 5700, without end
first window: (5687, 5701], 14 days
mechanism: sliding_root of 14 periods
noise: rounded Gaussian of sigma 2.329e+05 on encoder rows
error: std 4.9, 95% within 9.604 in period 1
epsilon: 2.84872
loss: local rho 0.190275
note: noise => 'laplace' would need an epsilon of 1.918 instead of 2.849; its price adds in epsilon, plainly: 4 such releases take epsilon 7.67, which holds 5 of those in rho;

# --- running totals: a binary tree; `state` starts from what was there before

-- every: 1 day
SELECT count(*) FROM cases;
kind: running_total
measure: state
periods: 1 day each from boundary 5700, 3653 in each epoch
first window: (-infinity, 5701], everything
mechanism: signed_tree of 4 levels of radix 6 on the state before period 1
noise: discrete Laplace of scale 24.23, by level 4.312, 2.625, 1.812, 1, 1 times that
error: std 151.7, 95% within 319 in period 1
epsilon: 0.5
loss: imported epsilon 0.5, local epsilon 0.219961
note: horizon 3653 periods by default: noise is calibrated for so many
note: after 3653 periods a new epoch begins, whose total goes on
note: mean standard error 246.8; with horizon => 365 it would be 205.8
note: an entry that lives through two epochs loses up to epsilon 0.5228;

-- every: 1 day
-- delta: 1/1000000
-- horizon: 365
SELECT count(*) FROM cases WHERE status = 'confirmed';
kind: running_total
measure: state
periods: 1 day each from boundary 5700, 365 in all
first window: (-infinity, 5701], everything
mechanism: square_root on the state before period 1
noise: rounded Gaussian of sigma 1.381e+08 on encoder rows
error: std 36.82, 95% within 72.17 in period 1
epsilon: 0.5
loss: imported rho 0.00765971, local rho 0.00219775;

-- every: 1 day
-- horizon: 365
-- groups: VALUES ('DENV-1'), ('DENV-2')
SELECT serotype, count(*) FROM cases GROUP BY serotype;
kind: running_total
measure: state by group
periods: 1 day each from boundary 5700, 365 in all
first window: (-infinity, 5701], everything
mechanism: signed_tree of 3 levels of radix 6 on the state before period 1
noise: discrete Laplace of scale 47.51, by level 3.625, 2.188, 1, 1 times that
error: std 252.6, 95% within 530 in period 1
epsilon: 0.5
loss: imported epsilon 0.5, local epsilon 0.145921;

-- every: 1 day
-- measure: entered
-- horizon: 365
SELECT count(*) FROM cases WHERE status = 'confirmed' AND dp_time <= now();
kind: running_total
measure: entered
periods: 1 day each from boundary 5700, 365 in all
first window: (5700, 5701], 1 day
mechanism: signed_tree of 4 levels of radix 7
noise: discrete Laplace of scale 120
error: std 169.7, 95% within 359 in period 1
epsilon: 0.5
loss: imported epsilon 0.5, local epsilon 0.0333333
note: entered counts from the start of the first period on, not what was there before;

-- every: 1 month
-- types: local k3
SELECT count(*) FROM cases;
kind: running_total
measure: state
periods: 1 month each from boundary 5689, 120 in each epoch
first window: (-infinity, 5720], everything
mechanism: signed_tree of 2 levels of radix 15 on the state before period 1
noise: discrete Laplace of scale 8
error: std 15.99, 95% within 33 in period 1
epsilon: 0.5
loss: local epsilon 0.5
note: horizon 120 periods by default: noise is calibrated for so many
note: after 120 periods a new epoch begins, whose total goes on
note: mean standard error 33.48; with horizon => 12 it would be 15.45
note: an entry that lives through two epochs loses up to epsilon 0.75;

-- every: 7 days
-- horizon: 52
-- boundary 2015-09-01: 5719
SELECT count(*) FROM cases WHERE dp_time >= '2015-09-01';
kind: running_total
measure: net
periods: 7 days each from boundary 5719, 52 in all
first window: (5719, 5726], 7 days
mechanism: signed_tree of 2 levels of radix 6
noise: discrete Laplace of scale 9.161, by level 1.938, 1 times that
error: std 25.1, 95% within 53 in period 1
epsilon: 0.5
loss: imported epsilon 0.5, local epsilon 0.330986
note: dp_time is read as the half-open range (start, end]: a mutation at the instant of a boundary counts in the tick that ends there;

-- every: 1 month
-- horizon: 12
-- boundary 2015-09-01: 5720
SELECT count(*) FROM cases WHERE dp_time >= '2015-09-01';
kind: running_total
measure: net
periods: 1 month each from boundary 5720, 12 in all
first window: (5720, 5750], 30 days
mechanism: signed_tree of 2 levels of radix 9
noise: discrete Laplace of scale 5.6, by level 1, 1.25 times that
error: std 7.909, 95% within 17 in period 1
epsilon: 0.5
loss: imported epsilon 0.5, local epsilon 0.5
note: dp_time is read as the half-open range (start, end]: a mutation at the instant of a boundary counts in the tick that ends there;

-- every: 7 days
-- horizon: 100
SELECT count(*) FROM cases WHERE dp_time <= now() - INTERVAL '3 days';
kind: running_total
measure: state
periods: 7 days each from boundary 5698, 100 in all
first window: (-infinity, 5702], everything, aged 3 days
mechanism: signed_tree of 2 levels of radix 8 on the state before period 1
noise: discrete Laplace of scale 9, by level 2, 1, 1 times that
error: std 28.45, 95% within 59 in period 1
epsilon: 0.5
loss: imported epsilon 0.5, local epsilon 0.444444;

-- every: 7 days
-- horizon: 100
-- boundary 2015-09-01: 5719
SELECT count(*) FROM cases WHERE dp_time > '2015-09-01' AND dp_time <= now() - INTERVAL '3 days';
kind: running_total
measure: net
periods: 7 days each from boundary 5722, 100 in all
first window: (5719, 5726], 7 days, aged 3 days
mechanism: signed_tree of 2 levels of radix 8
noise: discrete Laplace of scale 9, by level 2, 1 times that
error: std 25.45, 95% within 54 in period 1
epsilon: 0.5
loss: imported epsilon 0.5, local epsilon 0.333333;

-- every: 1 day
-- horizon: 30
-- types: unconstrained
SELECT count(*) FROM cases;
kind: running_total
measure: state
periods: 1 day each from boundary 5700, 30 in all
first window: (-infinity, 5701], everything
mechanism: binary_tree on the state before period 1
noise: discrete Laplace of scale 62
error: std 124, 95% within 255 in period 1
epsilon: 0.5
loss: unconstrained epsilon 0.5;

-- every: 1 hour
-- tick: 1 hour
-- types: local k3
SELECT count(*) FROM cases;
kind: running_total
measure: state
periods: 1 hour each from boundary 5700, 4096 in each epoch
first window: (-infinity, 5701], everything
mechanism: signed_tree of 3 levels of radix 20 on the state before period 1
noise: discrete Laplace of scale 12
error: std 23.99, 95% within 49 in period 1
epsilon: 0.5
loss: local epsilon 0.5
note: horizon 4096 periods by default: noise is calibrated for so many
note: after 4096 periods a new epoch begins, whose total goes on
note: mean standard error 67.89; with horizon => 409 it would be 44.3
note: an entry that lives through two epochs loses up to epsilon 0.75;

-- every: 1 day
-- max_error: 50
-- horizon: 365
-- delta: 1/1000000
SELECT count(*) FROM cases;
kind: running_total
measure: state
periods: 1 day each from boundary 5700, 365 in all
first window: (-infinity, 5701], everything
mechanism: square_root on the state before period 1
noise: rounded Gaussian of sigma 6.235e+07 on encoder rows
error: std 16.62, 95% within 32.58 in period 1
epsilon: 1.17512
loss: imported rho 0.0375957, local rho 0.0107871;

# --- once: a fixed range has one answer

-- boundary 2015-09-01: 5719
-- boundary 2015-10-01: 5749
SELECT count(*) FROM cases WHERE dp_time >= '2015-09-01' AND dp_time < '2015-10-01';
kind: once
measure: net
periods: one answer
first window: (5719, 5749], 30 days
mechanism: one_window
noise: discrete Laplace of scale 2
error: std 2.799, 95% within 6 in period 1
epsilon: 0.5
loss: imported epsilon 0.5, local epsilon 0.5
note: dp_time is read as the half-open range (start, end]: a mutation at the instant of a boundary counts in the tick that ends there;

-- boundary 2015-09-01: 5719
-- boundary 2015-09-30: 5748
SELECT count(*) FROM cases WHERE dp_time BETWEEN '2015-09-01' AND '2015-09-30';
kind: once
measure: net
periods: one answer
first window: (5719, 5748], 29 days
mechanism: one_window
noise: discrete Laplace of scale 2
error: std 2.799, 95% within 6 in period 1
epsilon: 0.5
loss: imported epsilon 0.5, local epsilon 0.5
note: dp_time is read as the half-open range (start, end]: a mutation at the instant of a boundary counts in the tick that ends there
note: a day as the end of the range means its first instant, as in SQL: that day itself is not counted;

-- boundary 2015-09-01 00:00+08: 5719
-- boundary 2015-10-01: 5749
-- measure: entered
SELECT count(*) FROM cases WHERE dp_time > TIMESTAMPTZ '2015-09-01 00:00+08' AND dp_time <= TIMESTAMP '2015-10-01';
kind: once
measure: entered
periods: one answer
first window: (5719, 5749], 30 days
mechanism: one_window
noise: discrete Laplace of scale 30
error: std 42.42, 95% within 90 in period 1
epsilon: 0.5
loss: imported epsilon 0.5, local epsilon 0.0333333
note: a day as the end of the range means its first instant, as in SQL: that day itself is not counted;

-- boundary 2015-09-01: 5719
-- delta: 1/1000000
SELECT count(*) FROM cases WHERE dp_time < DATE '2015-09-01';
kind: once
measure: state
periods: one answer
first window: (-infinity, 5719], everything
mechanism: one_window
noise: rounded Gaussian of sigma 8.079
error: std 8.085, 95% within 16 in period 1
epsilon: 0.5
loss: imported rho 0.00765971, local rho 0.00765971
note: dp_time is read as the half-open range (start, end]: a mutation at the instant of a boundary counts in the tick that ends there
note: noise => 'laplace' would do with a mean standard error of 2.799 instead of 8.085; its price adds in epsilon, plainly: 4 such releases take epsilon 2, which holds 13 of those in rho;

-- boundary 2015-09-01: 5719
-- types: local k3
-- measure: entered
SELECT count(*) FROM cases WHERE dp_time < '2015-09-01';
kind: once
measure: entered
periods: one answer
first window: (-infinity, 5719], everything
mechanism: one_window
noise: discrete Laplace of scale 2
error: std 2.799, 95% within 6 in period 1
epsilon: 0.5
loss: local epsilon 0.5
note: dp_time is read as the half-open range (start, end]: a mutation at the instant of a boundary counts in the tick that ends there;

# --- figures: sums, means, windows of their own

-- every: 1 day
SELECT count(*) AS n FROM cases WHERE dp_time > now() - INTERVAL '1 day';
kind: disjoint
measure: net
periods: 1 day each from boundary 5700, without end
first window: (5700, 5701], 1 day
mechanism: independent_windows
noise: discrete Laplace of scale 58
error: std 82.02, 95% within 174 in period 1
epsilon: 0.5
loss: imported epsilon 0.5, local epsilon 0.0344827;

-- every: 1 day
SELECT count(DISTINCT id) FROM cases WHERE dp_time > now() - INTERVAL '1 day';
kind: disjoint
measure: net
periods: 1 day each from boundary 5700, without end
first window: (5700, 5701], 1 day
mechanism: independent_windows
noise: discrete Laplace of scale 58
error: std 82.02, 95% within 174 in period 1
epsilon: 0.5
loss: imported epsilon 0.5, local epsilon 0.0344827;

-- every: 1 day
SELECT count(status) FROM cases WHERE imported AND dp_time > now() - INTERVAL '1 day';
kind: disjoint
measure: net
periods: 1 day each from boundary 5700, without end
first window: (5700, 5701], 1 day
mechanism: independent_windows
noise: discrete Laplace of scale 58
error: std 82.02, 95% within 174 in period 1
epsilon: 0.5
loss: imported epsilon 0.5, local epsilon 0.0344827;

-- every: 1 day
-- bounds: age 0 120
SELECT sum(age) FROM cases WHERE dp_time > now() - INTERVAL '1 day';
figures: sum = sum of 0
statistic 0: sum of age where age IS NOT NULL, stream 0
loss together: imported epsilon 0.5, local epsilon 0.0344827
--- stream 0: 1.000 of the budget, an entry adds 0 to 120
kind: disjoint
measure: net
periods: 1 day each from boundary 5700, without end
first window: (5700, 5701], 1 day
mechanism: independent_windows
noise: discrete Laplace of scale 6960
error: std 9843, 95% within 2.085e+04 in period 1
epsilon: 0.5
loss: imported epsilon 0.5, local epsilon 0.0344827;

-- every: 1 day
-- bounds: amount -10 30 0.5
-- groups: VALUES ('Tainan'), ('Kaohsiung')
SELECT county, sum(amount) FROM cases WHERE dp_time > now() - INTERVAL '7 days' GROUP BY county;
figures: sum = sum of 0
statistic 0: sum of amount where amount <> 'NaN' AND amount IS NOT NULL, stream 0
loss together: imported epsilon 0.5, local epsilon 0.222222
--- stream 0: 1.000 of the budget, an entry adds -20 to 60
kind: sliding
measure: net by group
periods: 1 day each from boundary 5700, without end
first window: (5694, 5701], 7 days
mechanism: independent_windows
noise: discrete Laplace of scale 7560
error: std 1.069e+04, 95% within 2.265e+04 in period 1
epsilon: 0.5
loss: imported epsilon 0.5, local epsilon 0.222222;

-- every: 1 day
-- bounds: age 0 120
-- max_error: 1000
-- horizon: 30
-- types: local k3
SELECT sum(age) FROM cases;
figures: sum = sum of 0
statistic 0: sum of age where age IS NOT NULL, stream 0
loss together: local epsilon 3.71486
--- stream 0: 1.000 of the budget, an entry adds 0 to 120
kind: running_total
measure: state
periods: 1 day each from boundary 5700, 30 in all
first window: (-infinity, 5701], everything
mechanism: plain_sums on the state before period 1
noise: discrete Laplace of scale 64.61
error: std 129.2, 95% within 266 in period 1
epsilon: 3.71486
loss: local epsilon 3.71486;

-- every: 1 day
-- bounds: age 0 120
-- measure: entered
SELECT avg(age) FROM cases WHERE dp_time > now() - INTERVAL '1 day';
figures: avg = avg of 0 and 1
statistic 0: sum of age where age IS NOT NULL, stream 0
statistic 1: count where age IS NOT NULL, stream 1
loss together: imported epsilon 0.5, local epsilon 0.0333333
--- stream 0: 0.500 of the budget, an entry adds -60 to 60
kind: disjoint
measure: entered
periods: 1 day each from boundary 5700, without end
first window: (5700, 5701], 1 day
mechanism: independent_windows
noise: discrete Laplace of scale 3600
error: std 5091, 95% within 1.078e+04 in period 1
epsilon: 0.25
loss: imported epsilon 0.25, local epsilon 0.0166667
--- stream 1: 0.500 of the budget, an entry adds 0 to 1
kind: disjoint
measure: entered
periods: 1 day each from boundary 5700, without end
first window: (5700, 5701], 1 day
mechanism: independent_windows
noise: discrete Laplace of scale 60
error: std 84.85, 95% within 180 in period 1
epsilon: 0.25
loss: imported epsilon 0.25, local epsilon 0.0166667;

-- every: 1 day
-- bounds: age 0 120
-- delta: 1/1000000
-- horizon: 30
-- types: local k3
SELECT count(*) AS n, count(*) FILTER (WHERE imported) AS imported, sum(age) AS age_sum, avg(age) AS mean_age, variance(age), stddev_pop(age) AS deviation FROM cases;
figures: n = count of 0, imported = count of 1, age_sum = sum of 2, mean_age = avg of 2 and 3, variance = var_samp of 4 and 2 and 3, deviation = stddev_pop of 4 and 2 and 3
statistic 0: count, stream 0
statistic 1: count where imported, stream 1
statistic 2: sum of age where age IS NOT NULL, stream 2
statistic 3: count where age IS NOT NULL, stream 3
statistic 4: sum of squares of age where age IS NOT NULL, stream 4
loss together: local rho 0.00765971
--- stream 0: 0.200 of the budget, an entry adds 0 to 1
kind: running_total
measure: state
periods: 1 day each from boundary 5700, 30 in all
first window: (-infinity, 5701], everything
mechanism: square_root on the state before period 1
noise: rounded Gaussian of sigma 2.115e+06 on encoder rows
error: std 36.08, 95% within 70.72 in period 1
epsilon: 0.211604
loss: local rho 0.00153194
--- stream 1: 0.200 of the budget, an entry adds 0 to 1
kind: running_total
measure: state
periods: 1 day each from boundary 5700, 30 in all
first window: (-infinity, 5701], everything
mechanism: square_root on the state before period 1
noise: rounded Gaussian of sigma 2.115e+06 on encoder rows
error: std 36.08, 95% within 70.72 in period 1
epsilon: 0.211604
loss: local rho 0.00153194
--- stream 2: 0.200 of the budget, an entry adds 0 to 120
kind: running_total
measure: state
periods: 1 day each from boundary 5700, 30 in all
first window: (-infinity, 5701], everything
mechanism: square_root on the state before period 1
noise: rounded Gaussian of sigma 2.538e+08 on encoder rows
error: std 4330, 95% within 8486 in period 1
epsilon: 0.211604
loss: local rho 0.00153194
--- stream 3: 0.200 of the budget, an entry adds 0 to 1
kind: running_total
measure: state
periods: 1 day each from boundary 5700, 30 in all
first window: (-infinity, 5701], everything
mechanism: square_root on the state before period 1
noise: rounded Gaussian of sigma 2.115e+06 on encoder rows
error: std 36.08, 95% within 70.72 in period 1
epsilon: 0.211604
loss: local rho 0.00153194
--- stream 4: 0.200 of the budget, an entry adds 0 to 3600
kind: running_total
measure: state
periods: 1 day each from boundary 5700, 30 in all
first window: (-infinity, 5701], everything
mechanism: square_root on the state before period 1
noise: rounded Gaussian of sigma 7.614e+09 on encoder rows
error: std 1.299e+05, 95% within 2.546e+05 in period 1
epsilon: 0.211604
loss: local rho 0.00153194;

-- every: 1 day
-- bounds: age -20 100 10
-- types: local k3
SELECT sum(age * age) FROM cases WHERE dp_time > now() - INTERVAL '1 day';
figures: sum = sum_squares of 0
statistic 0: sum of squares of age where age IS NOT NULL, stream 0
loss together: local epsilon 0.5
--- stream 0: 1.000 of the budget, an entry adds 0 to 100
kind: disjoint
measure: net
periods: 1 day each from boundary 5700, without end
first window: (5700, 5701], 1 day
mechanism: independent_windows
noise: discrete Laplace of scale 400
error: std 565.7, 95% within 1198 in period 1
epsilon: 0.5
loss: local epsilon 0.5;

-- every: 1 day
-- types: local k3
SELECT count(*) FILTER (WHERE dp_time > now() - INTERVAL '7 days') AS d7, count(*) FILTER (WHERE dp_time > now() - INTERVAL '14 days') AS d14, count(*) FILTER (WHERE dp_time > now() - INTERVAL '28 days') AS d28 FROM cases;
figures: d7 = count of 0, d14 = count of 1, d28 = count of 2
statistic 0: count over 7 periods, stream 0
statistic 1: count over 14 periods, stream 0
statistic 2: count over 28 periods, stream 0
loss together: local epsilon 0.5
--- stream 0: 1.000 of the budget, an entry adds 0 to 1
kind: sliding
measure: net
periods: 1 day each from boundary 5700, without end
first window: (5673, 5701], 28 days
mechanism: disjoint_sums of 28 periods
noise: discrete Laplace of scale 4
error: std 29.86, 95% within 59 in period 1
epsilon: 0.5
loss: local epsilon 0.5;

-- every: 1 day
-- types: local k3
-- delta: 1/1000000
SELECT count(*) FILTER (WHERE dp_time > now() - INTERVAL '7 days') AS d7, count(*) FILTER (WHERE dp_time > now() - INTERVAL '14 days') AS d14, count(*) FILTER (WHERE dp_time > now() - INTERVAL '28 days') AS d28 FROM cases;
figures: d7 = count of 0, d14 = count of 1, d28 = count of 2
statistic 0: count over 7 periods, stream 0
statistic 1: count over 14 periods, stream 0
statistic 2: count over 28 periods, stream 0
loss together: local rho 0.00765971
--- stream 0: 1.000 of the budget, an entry adds 0 to 1
kind: sliding
measure: net
periods: 1 day each from boundary 5700, without end
first window: (5673, 5701], 28 days
mechanism: shared_windows of 7, 14, 28 periods
noise: rounded Gaussian of sigma 1.017e+06 on encoder rows
error: std 28.14, 95% within 55.15 in period 1
epsilon: 0.5
loss: local rho 0.00765971
note: noise => 'laplace' would err 0.88 times as much over all figures; its price adds in epsilon, plainly: 4 such releases take epsilon 2, which holds 13 of those in rho;

-- every: 7 days
-- types: local k3
SELECT count(*) FILTER (WHERE dp_time > now() - INTERVAL '7 days') AS d7, count(*) FILTER (WHERE dp_time > now() - INTERVAL '10 days') AS d10 FROM cases;
figures: d7 = count of 0, d10 = count of 1
statistic 0: count, stream 0
statistic 1: count, stream 1
loss together: local epsilon 0.5
--- stream 0: 0.409 of the budget, an entry adds 0 to 1
kind: disjoint
measure: net
periods: 7 days each from boundary 5698, without end
first window: (5698, 5705], 7 days
mechanism: independent_windows
noise: discrete Laplace of scale 9.769
error: std 13.81, 95% within 29 in period 1
epsilon: 0.204729
loss: local epsilon 0.204729
--- stream 1: 0.591 of the budget, an entry adds 0 to 1
kind: sliding
measure: net
periods: 7 days each from boundary 5698, without end
first window: (5695, 5705], 10 days
mechanism: disjoint_sums of 1 period and 3 ticks more
noise: discrete Laplace of scale 6.773
error: std 16.58, 95% within 34 in period 1
epsilon: 0.295271
loss: local epsilon 0.295271;

# --- bins: group keys that need no list

-- every: 1 day
SELECT width_bucket(age, 0, 100, 20) AS bin, count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day' GROUP BY 1;
kind: disjoint
measure: net by group
periods: 1 day each from boundary 5700, without end
first window: (5700, 5701], 1 day
mechanism: independent_windows
noise: discrete Laplace of scale 114
error: std 161.2, 95% within 342 in period 1
epsilon: 0.5
loss: imported epsilon 0.5, local epsilon 0.0350877;

-- every: 1 day
-- horizon: 100
-- groups: VALUES ('Tainan')
SELECT county, width_bucket(amount, ARRAY[-1.5, 0, 18]), count(*) FROM cases GROUP BY 1, width_bucket(amount, ARRAY[-1.5, 0, 18]);
kind: running_total
measure: state by group
periods: 1 day each from boundary 5700, 100 in all
first window: (-infinity, 5701], everything
mechanism: signed_tree of 4 levels of radix 4 on the state before period 1
noise: discrete Laplace of scale 72.11, by level 2.562, 1.75, 1.25, 1, 1 times that
error: std 280.5, 95% within 584 in period 1
epsilon: 0.5
loss: imported epsilon 0.5, local epsilon 0.114898;

# --- prices in epsilon beside prices in rho

-- every: 1 day
-- types: local k1
-- delta: 1/1000000
-- horizon: 16
-- measure: net
SELECT count(*) FROM cases WHERE status = 'confirmed';
kind: running_total
measure: net
periods: 1 day each from boundary 5700, 16 in all
first window: (5700, 5701], 1 day
mechanism: weighted_square_root
noise: rounded Gaussian of sigma 2.274e+15 on encoder rows
error: std 13, 95% within 25.47 in period 1
epsilon: 0.5
loss: local rho 0.00765971
note: net counts from the start of the first period on, not what was there before
note: noise => 'laplace' would do with a mean standard error of 8.161 instead of 13.74; its price adds in epsilon, plainly: 4 such releases take epsilon 2, which holds 13 of those in rho;

-- every: 1 day
-- types: local k1
-- delta: 1/1000000
-- horizon: 16
-- measure: net
-- noise: laplace
SELECT count(*) FROM cases WHERE status = 'confirmed';
kind: running_total
measure: net
periods: 1 day each from boundary 5700, 16 in all
first window: (5700, 5701], 1 day
mechanism: plain_sums
noise: discrete Laplace of scale 2
error: std 2.799, 95% within 6 in period 1
epsilon: 0.5
loss: local epsilon 0.5
note: net counts from the start of the first period on, not what was there before
note: its price adds in epsilon, plainly: 4 such releases take epsilon 2, which holds 13 of those in rho;

-- every: 1 day
-- types: local k1
-- delta: 1/1000000
-- horizon: 16
-- measure: net
-- whole: yes
SELECT count(*) FROM cases WHERE status = 'confirmed';
kind: running_total
measure: net
periods: 1 day each from boundary 5700, 16 in all
first window: (5700, 5701], 1 day
mechanism: plain_sums
noise: discrete Laplace of scale 2
error: std 2.799, 95% within 6 in period 1
epsilon: 0.5
loss: local epsilon 0.5
note: net counts from the start of the first period on, not what was there before
note: this is all of the budget: Laplace noise, which adds in epsilon, errs least;

-- every: 1 day
-- types: local k4
-- delta: 1/1000000
-- whole: yes
SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '28 days';
kind: sliding
measure: net
periods: 1 day each from boundary 5700, without end
first window: (5673, 5701], 28 days
mechanism: sliding_root of 28 periods
noise: rounded Gaussian of sigma 1.868e+06 on encoder rows
error: std 41.55, 95% within 81.43 in period 1
epsilon: 0.5
loss: local rho 0.00765971;

-- every: 1 day
-- types: local k2
-- delta: 1/1000000
-- bounds: age 0 120
-- noise: laplace
-- measure: entered
SELECT count(*), avg(age) FROM cases WHERE dp_time > now() - INTERVAL '7 days';
figures: count = count of 0, avg = avg of 1 and 2
statistic 0: count, stream 0
statistic 1: sum of age where age IS NOT NULL, stream 1
statistic 2: count where age IS NOT NULL, stream 2
loss together: local epsilon 0.5
--- stream 0: 0.333 of the budget, an entry adds 0 to 1
kind: sliding
measure: entered
periods: 1 day each from boundary 5700, without end
first window: (5694, 5701], 7 days
mechanism: disjoint_sums of 7 periods
noise: discrete Laplace of scale 6
error: std 22.42, 95% within 45 in period 1
epsilon: 0.166667
loss: local epsilon 0.166667
note: its price adds in epsilon, plainly: 4 such releases take epsilon 2, which holds 13 of those in rho
--- stream 1: 0.333 of the budget, an entry adds -60 to 60
kind: sliding
measure: entered
periods: 1 day each from boundary 5700, without end
first window: (5694, 5701], 7 days
mechanism: disjoint_sums of 7 periods
noise: discrete Laplace of scale 360
error: std 1347, 95% within 2681 in period 1
epsilon: 0.166667
loss: local epsilon 0.166667
--- stream 2: 0.333 of the budget, an entry adds 0 to 1
kind: sliding
measure: entered
periods: 1 day each from boundary 5700, without end
first window: (5694, 5701], 7 days
mechanism: disjoint_sums of 7 periods
noise: discrete Laplace of scale 6
error: std 22.42, 95% within 45 in period 1
epsilon: 0.166667
loss: local epsilon 0.166667;

# --- long totals, and totals of many groups: noise from a few buffers

-- every: 1 hour
-- tick: 1 hour
-- delta: 1/1000000
-- horizon: 87600
-- types: imported k1
SELECT count(*) FROM cases WHERE status = 'confirmed';
kind: running_total
measure: state
periods: 1 hour each from boundary 5700, 87600 in all
first window: (-infinity, 5701], everything
mechanism: buffered from 5 buffers on the state before period 1
noise: rounded Gaussian of sigma 5.742e+08 in steps of 2^-25
error: std 19.21, 95% within 37.65 in period 1
epsilon: 0.5
loss: imported rho 0.00765971;

-- every: 1 day
-- delta: 1/1000000
-- horizon: 5000
-- types: imported k4
-- max_error: 100
SELECT count(*) FROM cases WHERE status = 'confirmed';
kind: running_total
measure: state
periods: 1 day each from boundary 5700, 5000 in all
first window: (-infinity, 5701], everything
mechanism: square_root on the state before period 1
noise: rounded Gaussian of sigma 2.819e+10 on encoder rows
error: std 29.35, 95% within 57.53 in period 1
epsilon: 0.545523
loss: imported rho 0.00901422;

-- every: 1 day
-- delta: 1/1000000
-- horizon: 365
-- cells: 50000
-- groups: VALUES ('DENV-1'), ('DENV-2')
SELECT serotype, count(*) FROM cases GROUP BY serotype;
kind: running_total
measure: state by group
periods: 1 day each from boundary 5700, 365 in all
first window: (-infinity, 5701], everything
mechanism: buffered from 5 buffers on the state before period 1
noise: rounded Gaussian of sigma 1.052e+08 in steps of 2^-21
error: std 56.11, 95% within 110 in period 1
epsilon: 0.5
loss: imported rho 0.00765971, local rho 0.00178666;

# --- quantiles: from counts by value, in blocks of one or several lengths

-- every: 1 day
-- horizon: 100
-- types: local k3
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY dp_bounds(age, 0, 100, 5)) AS median FROM cases;
figures: median = percentile_disc(0.5) of 0
statistic 0: count by age where age IS NOT NULL, stream 0
loss together: local epsilon 0.5
note: median: with 95% its rank is off by at most 713.3 entries (period 91); it is one of 21 values, from 0 to 100 by 5
--- stream 0: 1.000 of the budget, an entry adds 0 to 1
kind: running_total
measure: state by group
periods: 1 day each from boundary 5700, 100 in all
first window: (-infinity, 5701], everything
mechanism: signed_tree of 2 levels of radix 14 on the state before period 1
noise: discrete Laplace of scale 16
error: std 31.99, 95% within 66 in period 1
epsilon: 0.5
loss: local epsilon 0.5;

-- every: 1 day
-- measure: entered
-- types: local k3
-- delta: 1/1000000
-- groups: VALUES ('Tainan')
-- bounds: age 0 120 1
SELECT county, percentile_disc(ARRAY[0.25, 0.5]) WITHIN GROUP (ORDER BY age) AS age, count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day' GROUP BY 1;
figures: age_25 = percentile_disc(0.25) of 0 and 1 and 2, age_50 = percentile_disc(0.5) of 0 and 1 and 2, count = count of 3
statistic 0: count by blocks of 25 values of age where age IS NOT NULL, stream 0
statistic 1: count by blocks of 5 values of age where age IS NOT NULL, stream 1
statistic 2: count by age where age IS NOT NULL, stream 2
statistic 3: count, stream 3
loss together: local rho 0.00765971
note: age_25: with 95% its rank is off by at most 146.9 entries (period 1); it is one of 121 values, from 0 to 120 by 1, counted in blocks of 25, 5 and 1 values
note: age_50: with 95% its rank is off by at most 105.4 entries (period 1); it is one of 121 values, from 0 to 120 by 1, counted in blocks of 25, 5 and 1 values
--- stream 0: 0.243 of the budget, an entry adds 0 to 1
kind: disjoint
measure: entered by group
periods: 1 day each from boundary 5700, without end
first window: (5700, 5701], 1 day
mechanism: independent_windows
noise: rounded Gaussian of sigma 16.4
error: std 16.4, 95% within 32 in period 1
epsilon: 0.234711
loss: local rho 0.00186004
note: noise => 'laplace' would err 0.62 times as much over all figures; its price adds in epsilon, plainly: 4 such releases take epsilon 2, which holds 13 of those in rho
--- stream 1: 0.243 of the budget, an entry adds 0 to 1
kind: disjoint
measure: entered by group
periods: 1 day each from boundary 5700, without end
first window: (5700, 5701], 1 day
mechanism: independent_windows
noise: rounded Gaussian of sigma 16.4
error: std 16.4, 95% within 32 in period 1
epsilon: 0.234711
loss: local rho 0.00186004
--- stream 2: 0.271 of the budget, an entry adds 0 to 1
kind: disjoint
measure: entered by group
periods: 1 day each from boundary 5700, without end
first window: (5700, 5701], 1 day
mechanism: independent_windows
noise: rounded Gaussian of sigma 15.51
error: std 15.51, 95% within 30 in period 1
epsilon: 0.24912
loss: local rho 0.00207959
--- stream 3: 0.243 of the budget, an entry adds 0 to 1
kind: disjoint
measure: entered by group
periods: 1 day each from boundary 5700, without end
first window: (5700, 5701], 1 day
mechanism: independent_windows
noise: rounded Gaussian of sigma 16.4
error: std 16.4, 95% within 32 in period 1
epsilon: 0.234711
loss: local rho 0.00186004;
