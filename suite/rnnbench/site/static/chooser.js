/* The chooser: the programs of one workload that fit a stream and its budgets. Their places are those of the rankings. */
"use strict";
(function () {
  const form = document.querySelector('form[data-filters="chooser"]');
  const table = document.getElementById("choices");
  const answer = document.getElementById("answer");
  const labels = rnnbench.labels(table);
  const workload = form.elements.workload;
  const options = Array.from(workload.options);

  /* A number above 0; null for anything else. A comma is that of 0,5, and not that of 1,000. */
  function budget(text) {
    const value = /,\d{3}\b/.test(text) ? NaN : Number(text.replace(",", "."));
    return text.trim() && value > 0 ? value : null;
  }

  /* What was typed and is no number limits nothing. The visitor is told. */
  function misread(wanted) {
    return ["period", "delay", "build", "memory"].filter(function (name) {
      const wrong = Boolean(wanted[name].trim()) && budget(wanted[name]) === null;
      form.elements[name].setAttribute("aria-invalid", wrong);
      return wrong;
    }).map((name) => " " + form.elements[name].labels[0].textContent.trim() + ": '" + wanted[name] + "' is no number above 0, such as 1000 or 0.5, so nothing is left out by it.").join("");
  }

  /* The time by which almost every call is over, and whether it is a p99. */
  function late(path) {
    if (!path) return [null, false];
    return path[3] !== null ? [path[3], true] : [path[2] !== null ? path[2] : path[0], false];
  }

  function judged(program, wanted) {
    const period = budget(wanted.period);
    const [call] = late(program.public || program.bound);
    const delay = period === null || call === null ? null : ((program.chunk - 1) * period) / 1e3 + call;
    const limits = [
      [budget(wanted.build), program.build, 1],
      [budget(wanted.memory), program.memory, 1024 * 1024],
      [budget(wanted.delay), delay, 1e-3],
    ];
    const kept = limits.every(([limit, value, unit]) => limit === null || (value !== null && value <= limit * unit));
    const paced = period === null || (program.streams && call !== null && call <= (program.chunk * period) / 1e3);
    return { program, delay, fits: kept && paced && (program.origin !== "kernel" || wanted.kernel === "yes") };
  }

  function interval(path, chunk) {
    return path && path[1] !== null ? rnnbench.seconds(path[1] / chunk) + " to " + rnnbench.seconds(path[2] / chunk) : "";
  }

  function line({ program, delay }) {
    const [call, isP99] = late(program.public);
    return rnnbench.row(labels, [
      program.origin,
      { text: program.place, sort: parseInt(program.place, 10), kind: "number" },
      rnnbench.element("a", program.program, { href: "trials/" + program.page + ".html" }),
      program.strategy,
      { text: program.streams ? program.chunk : program.chunk + " whole", sort: program.chunk, kind: "number" },
      { text: rnnbench.seconds(program.bound[0] / program.chunk), small: interval(program.bound, program.chunk), sort: program.bound[0] / program.chunk, kind: "number" },
      { text: program.public ? rnnbench.seconds(program.public[0]) : "—", small: interval(program.public, 1), sort: program.public && program.public[0], kind: "number" },
      { text: rnnbench.seconds(call) + (call !== null && !isP99 ? " *" : ""), sort: call, kind: "number" },
      { text: rnnbench.seconds(delay), sort: delay, kind: "number" },
      { text: rnnbench.seconds(program.build), sort: program.build, kind: "number" },
      { text: rnnbench.nbytes(program.memory), sort: program.memory, kind: "number" },
      command(program.command),
    ]);
  }

  /* A line breaks between the words of a command, and not at the hyphens of an option. */
  function command(text) {
    const code = rnnbench.element("code", "");
    for (const word of text.split(" ")) code.append(rnnbench.element("span", word, { class: "word" }), " ");
    return code;
  }

  /* Only workloads of the chosen cell, size and batch can be chosen; the first of them is, if none was. */
  function narrow(wanted) {
    const fitting = options.filter((option) => ["cell", "hidden", "batch"].every((name) => !wanted[name] || option.dataset[name] === wanted[name]));
    const chosen = fitting.find((option) => option.value === wanted.workload) || fitting[0];
    workload.replaceChildren(...fitting);
    if (chosen) workload.value = chosen.value;
    return chosen;
  }

  rnnbench.onState(function (current) {
    workload.replaceChildren(...options);
    rnnbench.show(form, current);
    rnnbench.misses(form);
    const wanted = rnnbench.values(form);
    const chosen = narrow(wanted);
    if (!chosen) {
      table.hidden = true;
      answer.textContent = "No workload of these runs has this network, size and batch.";
      return;
    }
    const isChosen = () => workload.value === chosen.value;
    rnnbench.clear(answer, table);
    rnnbench.load(chosen.dataset.file).then(function (programs) {
      if (!isChosen()) return;
      const all = programs.map((program) => judged(program, wanted));
      const fitting = all.filter((each) => each.fits);
      rnnbench.fill(table, fitting.map(line));
      table.hidden = !fitting.length;
      const first = fitting.filter((each) => each.program.origin !== "kernel").sort((a, b) => a.program.bound[0] / a.program.chunk - b.program.bound[0] / b.program.chunk)[0];
      answer.textContent = fitting.length + " of " + all.length + " programs fit." +
        (first ? " The shortest time a step, kernels left out: " + first.program.program + " " + first.program.strategy + " with " + first.program.chunk + " steps a call, " + rnnbench.seconds(first.program.bound[0] / first.program.chunk) + " (" + (interval(first.program.bound, first.program.chunk) || "no interval: one process") + ")." : "") +
        misread(wanted);
    }).catch((error) => isChosen() && rnnbench.failed(answer)(error));
  });
})();
