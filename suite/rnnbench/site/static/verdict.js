/* Verdicts on two sets of process medians, as results/verdict.py gives them; tests hold both to the same answers. */
"use strict";
const verdict = (function () {
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  function variance(values) {
    const middle = mean(values);
    return values.reduce((sum, value) => sum + (value - middle) ** 2, 0) / (values.length - 1);
  }

  /* Logarithm of the gamma function (Lanczos). */
  function logGamma(x) {
    const g = [76.18009172947146, -86.50532032941677, 24.01409824083091, -1.231739572450155, 0.001208650973866179, -0.000005395239384953];
    let series = 1.000000000190015;
    g.forEach((coefficient, index) => (series += coefficient / (x + 1 + index)));
    const t = x + 5.5;
    return (x + 0.5) * Math.log(t) - t + Math.log((2.5066282746310005 * series) / x);
  }
  /* The regularised incomplete beta function, by its continued fraction (Lentz). */
  function beta(x, a, b) {
    if (x <= 0) return 0;
    if (x >= 1) return 1;
    if (x > (a + 1) / (a + b + 2)) return 1 - beta(1 - x, b, a);
    const front = Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log1p(-x)) / a;
    const tiny = 1e-300;
    let c = 1;
    let d = 1 / (1 - ((a + b) * x) / (a + 1) || tiny);
    let fraction = d;
    for (let m = 1; m < 500; m += 1) {
      for (const term of [(m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m)), (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1))]) {
        d = 1 / (1 + term * d || tiny);
        c = 1 + term / c || tiny;
        fraction *= c * d;
      }
      if (Math.abs(c * d - 1) < 1e-14) break;
    }
    return front * fraction;
  }
  /* Student's t with `freedom` degrees that is exceeded with the chance `tail`. */
  function quantile(tail, freedom) {
    const above = (t) => beta(freedom / (freedom + t * t), freedom / 2, 0.5) / 2;
    let low = 0;
    let high = 1;
    while (above(high) > tail && high < 1e300) high *= 2;
    for (let step = 0; step < 200 && high - low > 1e-13 * high; step += 1) {
      const middle = (low + high) / 2;
      if (above(middle) > tail) low = middle;
      else high = middle;
    }
    return (low + high) / 2;
  }

  function judge(difference, reach, smallest, observations) {
    const limit = Math.log1p(smallest);
    const [low, high] = [difference - reach, difference + reach];
    let word = "UNDECIDED";
    if (low > 0 && difference >= limit / 2) word = "SLOWER";
    else if (high < 0 && difference <= -limit / 2) word = "FASTER";
    else if (Math.abs(difference) < limit / 2 && -limit <= low && high <= limit) word = "SAME";
    return { verdict: word, ratio: Math.exp(difference), interval: [Math.exp(low), Math.exp(high)], observations };
  }
  function lone(difference, observations) {
    return { verdict: "UNDECIDED", ratio: Math.exp(difference), interval: null, observations };
  }

  /* Two runs: Welch's interval. */
  function apart(base, next, smallest, errorRate) {
    const [a, b] = [base.map(Math.log), next.map(Math.log)];
    const difference = mean(b) - mean(a);
    const fewest = Math.min(a.length, b.length);
    if (fewest < 2) return lone(difference, fewest);
    const [x, y] = [variance(a) / a.length, variance(b) / b.length];
    if (x + y === 0) return judge(difference, 0, smallest, fewest);
    const freedom = (x + y) ** 2 / (x ** 2 / (a.length - 1) + y ** 2 / (b.length - 1));
    return judge(difference, quantile(errorRate / 2, freedom) * Math.sqrt(x + y), smallest, fewest);
  }
  /* Both sides of one run, sampled in turn: the paired interval. Further processes of one side are left out. */
  function pairs(base, next, smallest, confidence) {
    const count = Math.min(base.length, next.length);
    const logs = Array.from({ length: count }, (_, index) => Math.log(next[index] / base[index]));
    if (count < 2) return lone(mean(logs), count);
    const reach = quantile((1 - confidence) / 2, count - 1) * Math.sqrt(variance(logs) / count);
    return judge(mean(logs), reach, smallest, count);
  }
  return { apart, pairs };
})();
