/* The compare page: two nights, versions, backends, strategies or machines, trial by trial. */
"use strict";
(function () {
  const form = document.querySelector('form[data-filters="compare"]');
  const settings = JSON.parse(form.dataset.settings);
  const table = document.getElementById("compared");
  const answer = document.getElementById("answer");
  const caution = document.getElementById("caution");
  const more = document.getElementById("more");
  const labels = rnnbench.labels(table);
  const MOST = 400;
  const ORDER = ["SLOWER", "FASTER", "UNDECIDED", "SAME"];
  const control = form.elements;
  let index;
  let trials;
  let turn = 0;

  /* The geometric mean, as `rnnbench compare` has it: two of them have the ratio that is judged. */
  function middle(values) {
    return Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length);
  }
  function named(number) {
    const night = index.nights[number];
    return night.started.replace("T", " ").slice(0, 16) + " " + night.run + " [" + night.machine.slice(0, 4) + "]";
  }
  function newest(fits) {
    for (let number = index.nights.length - 1; number >= 0; number -= 1) if (fits(index.nights[number], number)) return number;
    return -1;
  }
  function options(select, entries, fallback) {
    const wanted = rnnbench.state().get(select.name);
    select.replaceChildren(...entries.map(([value, text]) => rnnbench.element("option", text, { value })));
    const values = entries.map(([value]) => String(value));
    const chosen = values.includes(wanted) ? wanted : String(fallback);
    select.value = values.includes(chosen) ? chosen : values[0] || "";
    select.dataset.initial = values.includes(String(fallback)) ? String(fallback) : values[0] || "";
  }
  const nightOptions = () => index.nights.map((night, number) => [night.id, named(number)]).reverse();
  /* Where a night stands in the index; -1 if it is not there. An address names it by its id: its place changes when nights come and go. */
  const place = (id) => index.nights.findIndex((night) => night.id === id);

  /* The rows of a night as objects; those that share a measurement have its figures. */
  function read(rows) {
    const read = rows.map(function ([number, outcome, believed, same, power, medians, ...columns]) {
      const scale = 10 ** power;
      const figures = columns[0];
      const latencies = medians.map((path) => (path.length ? [path.map((value) => value * scale), middle(path) * scale] : 0));
      const [trial, workload, target, strategy, chunk] = trials.trials[number];
      return { trial, workload, target, strategy, chunk, outcome: trials.texts[outcome], believed, same: same < 0 ? null : trials.texts[same], latencies, figures };
    });
    const by = new Map(read.map((row) => [row.trial, row]));
    for (const row of read) {
      const shared = row.same && by.get(row.same);
      if (shared) Object.assign(row, { latencies: shared.latencies, believed: row.believed && shared.believed });
    }
    return read;
  }

  /* What to compare: for each side a night and a choice of its rows, and what of a row must be equal. */
  function plan() {
    const by = control.by.value;
    const wanted = { a: control.a.value, b: control.b.value };
    const same = (row) => row.trial;
    const all = () => true;
    if (by === "nights") return { a: [place(wanted.a), all], b: [place(wanted.b), all], key: same, paired: false };
    if (by === "machines") {
      const side = (machine) => [newest((night) => night.machine === machine), all];
      return { a: side(wanted.a), b: side(wanted.b), key: same, paired: false };
    }
    if (by === "versions") {
      const side = (text) => [newest((night) => night.versions.some((v) => index.versions[v][0] === control.backend.value && index.versions[v][1] === text)), (row) => trials.texts[row.target].split(":")[0] === control.backend.value];
      return { a: side(wanted.a), b: side(wanted.b), key: same, paired: false };
    }
    const field = by === "backends" ? "target" : "strategy";
    const other = by === "backends" ? "strategy" : "target";
    const night = place(control.night.value);
    const choose = (value) => (row) => trials.texts[row[field]] === value;
    return { a: [night, choose(wanted.a)], b: [night, choose(wanted.b)], key: (row) => [row.workload, row[other], row.chunk].join("|"), paired: true };
  }

  /* Offers of an earlier choice, whose data arrive later, are dropped. */
  async function offer(mine) {
    const by = control.by.value;
    form.querySelectorAll("[data-by]").forEach((label) => (label.hidden = !label.dataset.by.split(" ").includes(by)));
    const last = index.nights.length - 1;
    if (by === "nights") {
      const machine = index.nights[last].machine;
      const before = newest((night, number) => number < last && night.machine === machine);
      options(control.b, nightOptions(), index.nights[last].id);
      options(control.a, nightOptions(), index.nights[Math.max(0, before)].id);
    } else if (by === "machines") {
      const machines = Array.from(new Set(index.nights.map((night) => night.machine)));
      const entries = machines.map((machine) => [machine, index.nights[newest((night) => night.machine === machine)].cpu + " [" + machine + "]"]);
      options(control.a, entries, entries[0][0]);
      options(control.b, entries, entries[entries.length - 1][0]);
    } else if (by === "versions") {
      const backends = Array.from(new Set(index.versions.map(([backend]) => backend))).sort();
      const count = (backend) => index.versions.filter(([name]) => name === backend).length;
      options(control.backend, backends.map((name) => [name, name + " (" + count(name) + ")"]), backends.find((name) => count(name) > 1) || backends[0]);
      const versions = index.versions.filter(([name]) => name === control.backend.value).map(([, text]) => [text, text]);
      options(control.b, versions.slice().reverse(), versions[versions.length - 1][0]);
      options(control.a, versions, versions[Math.max(0, versions.length - 2)][0]);
    } else {
      options(control.night, nightOptions(), index.nights[last].id);
      const loaded = await rnnbench.load(index.nights[place(control.night.value)].file);
      if (mine !== turn) return;
      const rows = read(loaded).filter((row) => row.latencies.some(Boolean));
      const field = by === "backends" ? "target" : "strategy";
      const found = Array.from(new Set(rows.map((row) => trials.texts[row[field]]))).sort().map((text) => [text, text]);
      if (!found.length) found.push(["", "nothing was measured"]);
      options(control.a, found, found[0][0]);
      options(control.b, found, found[Math.min(1, found.length - 1)][0]);
    }
  }

  function judge(a, b, path, paired, machines) {
    const [base, next] = [a.latencies[path], b.latencies[path]];
    if (!base || !next) return null;
    const ratio = { verdict: "none", words: "no verdict", ratio: next[1] / base[1], interval: null };
    if (![...base[0], ...next[0]].every((latency) => latency > 0)) return { ...ratio, words: "no verdict: a latency is not above zero", ratio: null };
    if (machines) return { ...ratio, words: "no verdict: two machines" };
    if (a.outcome !== "ok" || b.outcome !== "ok") return { ...ratio, words: "no verdict: " + (a.outcome !== "ok" ? "A is " + a.outcome : "B is " + b.outcome) };
    if (!a.believed || !b.believed) return { ...ratio, words: "no verdict: not believed" };
    const made = paired ? verdict.pairs(base[0], next[0], settings.smallest, settings.ratio_confidence) : verdict.apart(base[0], next[0], settings.smallest, settings.error_rate);
    return { ...made, words: made.verdict };
  }

  /* How far a ratio is from 1, in logarithms: half and double are equally far. */
  const distance = (judged) => (judged.ratio === null ? 0 : Math.abs(Math.log(judged.ratio)));

  function share(a, b, name) {
    const place = settings.figures.indexOf(name);
    const [old, now] = [a.figures[place], b.figures[place]];
    return old && now ? { text: rnnbench.digits(now / old) + "×", sort: now / old, kind: "number" } : { text: "—", kind: "number" };
  }

  function line({ a, b, judged }, path, pages, machine) {
    const page = pages.get(machine + "\n" + b.trial);
    const name = a.trial === b.trial ? b.trial : alike(b);
    const show = (row) => {
      const latency = row.latencies[path];
      const [low, high] = [Math.min(...latency[0]), Math.max(...latency[0])];
      return { text: rnnbench.seconds(latency[1]), small: latency[0].length > 1 ? rnnbench.seconds(low) + " to " + rnnbench.seconds(high) : "one process", sort: latency[1], kind: "number" };
    };
    return rnnbench.row(labels, [
      { text: judged.words, kind: judged.verdict === "SLOWER" ? "bad" : judged.verdict === "FASTER" ? "good" : "" },
      page ? rnnbench.element("a", name, { href: "trials/" + page + ".html" }) : name,
      show(a),
      show(b),
      judged.ratio === null ? { text: "—", kind: "number" } : { text: judged.ratio.toFixed(3) + "×", sort: judged.ratio, kind: "number" },
      { text: judged.interval ? judged.interval[0].toFixed(3) + " to " + judged.interval[1].toFixed(3) : judged.verdict === "UNDECIDED" ? "one process" : "none", kind: "number" },
      share(a, b, "build_s"),
      share(a, b, "artifact_bytes"),
      share(a, b, "memory_run_peak"),
    ]);
  }

  /* What two different trials have in common: the target or the strategy, the steps of a call, and the workload. */
  function alike(row) {
    const other = trials.texts[control.by.value === "backends" ? row.strategy : row.target];
    return other + ", " + row.chunk + (row.chunk === 1 ? " step" : " steps") + " a call; " + trials.texts[row.workload];
  }

  /* Why no trial stands on both sides. */
  function nothing(a, b) {
    const [offered, by] = [control.a.options, control.by.value];
    if (offered.length < 2) return offered[0] && offered[0].value ? "There is only one to choose: " + offered[0].textContent + ". Compare two of another kind." : "Nothing was measured in this night.";
    const same = control.a.value === control.b.value || ((by === "nights" || by === "versions" || by === "machines") && a[0] === b[0]);
    return same ? "A and B are the same. Choose two." : "A and B have no measured trial in common.";
  }

  async function compare(mine) {
    rnnbench.clear(answer, table);
    caution.hidden = true;
    more.textContent = "";
    await offer(mine);
    if (mine !== turn) return;
    const { a, b, key, paired } = plan();
    const [left, right] = await Promise.all([a, b].map(async ([number, fits]) => (number < 0 ? [] : read(await rnnbench.load(index.nights[number].file)).filter(fits))));
    if (mine !== turn) return;
    const path = settings.paths.indexOf(control.path.value);
    const machines = a[0] >= 0 && b[0] >= 0 && index.nights[a[0]].machine !== index.nights[b[0]].machine;
    const olds = new Map(left.map((row) => [key(row), row]));
    const compared = right
      .filter((row) => olds.has(key(row)) && (a[0] !== b[0] || olds.get(key(row)).trial !== row.trial))
      .map((row) => ({ a: olds.get(key(row)), b: row }))
      .filter((pair) => !(pair.a.same && pair.b.same && !paired))
      .map((pair) => ({ ...pair, judged: judge(pair.a, pair.b, path, paired, machines) }))
      .filter((pair) => pair.judged);
    const counts = ORDER.map((word) => compared.filter((pair) => pair.judged.verdict === word).length + " " + word).join(", ");
    const changed = right.filter((row) => olds.has(key(row)) && olds.get(key(row)).outcome !== row.outcome).length;
    answer.textContent = compared.length
      ? compared.length + (compared.length === 1 ? " comparison: " : " comparisons: ") + counts + (changed ? "; " + changed + " with another outcome" : "") + "."
      : nothing(a, b);
    caution.hidden = !machines;
    caution.textContent = machines ? "A and B are two machines: a ratio compares the machines as well as the programs, and has no verdict." : "";
    const shown = compared
      .filter((pair) => (!control.verdict.value || pair.judged.verdict === control.verdict.value) && rnnbench.has(pair.b.trial + " " + alike(pair.b), control.q.value))
      .sort((x, y) => ORDER.indexOf(x.judged.verdict) - ORDER.indexOf(y.judged.verdict) || distance(y.judged) - distance(x.judged));
    const pages = new Map(index.pages.map(([machine, trial, page]) => [machine + "\n" + trial, page]));
    const machine = b[0] >= 0 ? index.nights[b[0]].machine : "";
    rnnbench.fill(table, shown.slice(0, MOST).map((pair) => line(pair, path, pages, machine)));
    table.hidden = !shown.length;
    const none = compared.length && !shown.length ? "None of them has this verdict and this text." : "";
    more.textContent = shown.length > MOST ? "The first " + MOST + " of " + shown.length + "; narrow the choice to see others." : none;
  }

  async function start() {
    index = await rnnbench.load(settings.nights);
    trials = await rnnbench.load(index.trials);
    rnnbench.onState(function (current) {
      rnnbench.show(form, current);
      const mine = (turn += 1);
      compare(mine).catch((error) => mine === turn && rnnbench.failed(answer)(error));
    });
  }
  start().catch(rnnbench.failed(answer));
})();
