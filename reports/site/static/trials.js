/* The list of all trials. */
"use strict";
(function () {
  const form = document.querySelector('form[data-filters="trials"]');
  const table = document.getElementById("trials");
  const answer = document.getElementById("answer");
  const labels = rnnbench.labels(table);
  const sparks = labels.length > 9;
  const names = form.dataset.shards.split(" ").filter(Boolean);

  function spark(found) {
    if (!found) return "—";
    const box = rnnbench.element("span");
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    for (const [name, value] of [["width", 82], ["height", 18], ["class", "spark"], ["aria-hidden", "true"]]) svg.setAttribute(name, value);
    const line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
    line.setAttribute("points", found[0]);
    svg.append(line);
    box.append(svg, " ", rnnbench.element("span", rnnbench.seconds(found[1]) + " to " + rnnbench.seconds(found[2]), { class: "spark-range" }));
    return box;
  }

  function line(trial) {
    const bound = trial.bound;
    const interval = bound && bound[1] !== null ? rnnbench.seconds(bound[1]) + " to " + rnnbench.seconds(bound[2]) : "—";
    const cells = [
      { text: rnnbench.element("a", trial.trial, { href: "trials/" + trial.page + ".html" }), small: trial.on },
      trial.program,
      trial.strategy,
      { text: trial.hidden, kind: "number" },
      { text: trial.batch, kind: "number" },
      { text: trial.chunk, kind: "number" },
      trial.outcome,
      { text: bound ? rnnbench.seconds(bound[0]) : "—", sort: bound ? bound[0] : null, kind: "number" },
      { text: interval, kind: "number" },
    ];
    if (sparks) cells.push(spark(trial.spark));
    return rnnbench.row(labels, cells);
  }

  Promise.all(names.map(rnnbench.load)).then(function (shards) {
    const all = shards.flat().map((trial) => ({ trial, row: line(trial), text: [trial.trial, trial.network, trial.program, trial.strategy, trial.on].join(" ") }));
    rnnbench.onState(function () {
      rnnbench.misses(form);
      const wanted = rnnbench.values(form);
      const found = all.filter(
        ({ trial, text }) =>
          ["backend", "strategy", "outcome", "case", "machine"].every((name) => !wanted[name] || trial[name] === wanted[name]) && rnnbench.has(text, wanted.q),
      );
      rnnbench.fill(table, found.map(({ row }) => row));
      answer.textContent = found.length + " of " + all.length + " trials.";
    });
  }).catch(rnnbench.failed(answer));
})();
