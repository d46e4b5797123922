/* The compare page: two nights, versions, backends, strategies, devices or machines, trial by trial. */
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
  const ORDER = ["SLOWER", "FASTER", "UNDECIDED", "SAME", "none"];
  /* In what two trials of one run differ, by kind. In all else they are one workload, called the same way. */
  const FIELD = { backends: "target", strategies: "strategy", devices: "device" };
  /* What may differ beside that, in the words of `rnnbench compare`, and the kinds whose ratio it would make one of two things. */
  const SETTINGS = [
    ["origins of programs", ["backends"]],
    ["kinds of arithmetic", []],
    ["devices", ["nights", "versions", "backends", "strategies"]],
    ["nodes", ["backends", "strategies", "devices"]],
  ];
  /* Then comes the sampling group: trials of one group were sampled in turn. */
  const GROUP = SETTINGS.length;
  const control = form.elements;
  let index;
  let trials;
  let turn = 0;

  function named(number) {
    const night = index.nights[number];
    return night.started.replace("T", " ").slice(0, 16) + " UTC " + night.run + " [" + night.machine.slice(0, 4) + "]";
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
    const read = rows.map(function ([number, outcome, believed, same, power, medians, figures, place]) {
      const latencies = medians.map(function (path) {
        const [mean, ...values] = path.map((value) => rnnbench.decimal(value, power));
        return values.length ? [values, mean] : 0;
      });
      const [trial, workload, target, strategy, chunk, device] = trials.trials[number];
      const setting = trials.settings[place];
      return { trial, workload, target, strategy, chunk, device, outcome: trials.texts[outcome], believed, same: same < 0 ? null : trials.texts[same], latencies, figures, setting };
    });
    const by = new Map(read.map((row) => [row.trial, row]));
    for (const row of read) {
      const shared = row.same && by.get(row.same);
      if (shared) Object.assign(row, { latencies: shared.latencies, believed: row.believed && shared.believed, setting: shared.setting });
    }
    return read;
  }

  /* The newest two nights that fit and had one plan, on one machine if `one` says so; else the newest that fit. */
  function newestPair(isA, isB, one) {
    const numbers = index.nights.map((_, number) => number).reverse();
    const alike = (number) => (one ? index.nights[number].machine : "") + " " + index.nights[number].plan;
    const tried = new Set();
    for (const b of numbers.filter(isB)) {
      if (tried.has(alike(b))) continue;
      tried.add(alike(b));
      const a = numbers.find((number) => number !== b && isA(number) && alike(number) === alike(b));
      if (a !== undefined) return [a, b];
    }
    const b = numbers.find(isB);
    const a = numbers.find((number) => number !== b && isA(number));
    return [a === undefined ? b : a, b];
  }

  /* What to compare: for each side a night and a choice of its rows, and what of a row must be equal. */
  function plan() {
    const by = control.by.value;
    const wanted = [control.a.value, control.b.value];
    const sides = (nights, fits) => nights.map((night, side) => [night, fits(wanted[side])]);
    const all = () => () => true;
    const ofTrial = (row) => row.trial;
    if (by === "nights") return { sides: sides(wanted.map(place), all), key: ofTrial };
    if (by === "machines") {
      const [isA, isB] = wanted.map((machine) => (number) => index.nights[number].machine === machine);
      return { sides: sides(newestPair(isA, isB, false), all), key: ofTrial };
    }
    if (by === "versions") {
      const backend = control.backend.value;
      const [isA, isB] = wanted.map((text) => (number) => index.nights[number].versions.some((v) => index.versions[v][0] === backend && index.versions[v][1] === text));
      return { sides: sides(newestPair(isA, isB, true), () => (row) => backendOf(row) === backend), key: ofTrial };
    }
    const night = place(control.night.value);
    const choose = (value) => (row) => trials.texts[row[FIELD[by]]] === value;
    return { sides: sides([night, night], choose), key: sharedBy(by) };
  }

  /* What must be equal of two trials of one run. */
  function sharedBy(by) {
    const equal = ["workload", "chunk", ...Object.values(FIELD).filter((name) => name !== FIELD[by])];
    return (row) => equal.map((name) => row[name]).join("|");
  }

  /* The two targets, strategies or devices with the most ratios; the first two where none has one. */
  function mostCompared(rows, by, found) {
    const key = sharedBy(by);
    const groups = new Map();
    for (const row of rows) {
      const group = key(row) + "|" + (by === "backends" ? row.setting[0] : "");
      groups.set(group, [...(groups.get(group) || []), trials.texts[row[FIELD[by]]]]);
    }
    const counts = new Map();
    for (const group of groups.values()) {
      for (const a of group) for (const b of group) if (a < b) counts.set(JSON.stringify([a, b]), (counts.get(JSON.stringify([a, b])) || 0) + 1);
    }
    const [most] = Array.from(counts).sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1));
    return most ? JSON.parse(most[0]) : [found[0], found[Math.min(1, found.length - 1)]];
  }

  /* Offers of an earlier choice, whose data arrive later, are dropped. */
  async function offer(mine) {
    const by = control.by.value;
    form.querySelectorAll("[data-by]").forEach((label) => (label.hidden = !label.dataset.by.split(" ").includes(by)));
    if (by === "nights") {
      const [a, b] = newestPair(() => true, () => true, true);
      options(control.b, nightOptions(), index.nights[b].id);
      options(control.a, nightOptions(), index.nights[a].id);
    } else if (by === "machines") {
      const entries = index.machines.map(([machine, cpu]) => [machine, cpu + " [" + machine + "]"]);
      options(control.a, entries, entries[0][0]);
      options(control.b, entries, entries[entries.length - 1][0]);
    } else if (by === "versions") {
      const backends = Array.from(new Set(index.versions.map(([backend]) => backend))).sort();
      const count = (backend) => index.versions.filter(([name]) => name === backend).length;
      options(control.backend, backends.map((name) => [name, name + " (" + count(name) + ")"]), backends.find((name) => count(name) > 1) || backends[0]);
      const versions = index.versions.filter(([name]) => name === control.backend.value).map(([, text]) => [text, text]);
      if (!versions.length) versions.push(["", "No run has a version."]);
      options(control.b, versions.slice().reverse(), versions[versions.length - 1][0]);
      options(control.a, versions, versions[Math.max(0, versions.length - 2)][0]);
    } else {
      options(control.night, nightOptions(), index.nights[index.nights.length - 1].id);
      const loaded = await rnnbench.load(index.nights[place(control.night.value)].file);
      if (mine !== turn) return;
      const rows = read(loaded).filter((row) => row.latencies.some(Boolean));
      const found = Array.from(new Set(rows.map((row) => trials.texts[row[FIELD[by]]]))).sort();
      const [a, b] = mostCompared(rows, by, found);
      const entries = found.length ? found.map((text) => [text, text]) : [["", "Nothing was measured in this night."]];
      options(control.a, entries, a);
      options(control.b, entries, b);
    }
  }

  /* The settings in which two rows differ, as [words, whether a ratio would mean nothing]. */
  function unlike(a, b) {
    return SETTINGS.flatMap(([what, kinds], place) => {
      const [x, y] = [a.setting[place], b.setting[place]];
      return x && y && x !== y ? [[what + " differ, " + x + " and " + y, kinds.includes(control.by.value)]] : [];
    });
  }

  function judge(a, b, path, machines) {
    const [base, next] = [a.latencies[path], b.latencies[path]];
    if (!base || !next) return null;
    const none = (words, ratio) => ({ verdict: "none", words, ratio: ratio === undefined ? null : ratio, interval: null });
    const inOneRun = control.by.value in FIELD;
    const differences = unlike(a, b);
    const parting = differences.find(([, parts]) => parts);
    if (![...base[0], ...next[0]].every((latency) => latency > 0)) return none("no verdict: a latency is not above zero");
    if (a.outcome !== "ok" || b.outcome !== "ok") return none("no verdict: " + (a.outcome !== "ok" ? "A is " + a.outcome : "B is " + b.outcome));
    if (!a.believed || !b.believed) return none("no verdict: not believed");
    if (inOneRun && (a.same || a.trial) === (b.same || b.trial)) return none("one program, measured once");
    if (parting) return none("not compared: " + parting[0]);
    if (machines) return none("no verdict: two machines", next[1] / base[1]);
    const inTurn = inOneRun && a.device === b.device && a.setting[GROUP] === b.setting[GROUP];
    const made = inTurn ? verdict.pairs(base[0], next[0], settings.smallest, settings.ratio_confidence) : verdict.apart(base[0], next[0], settings.smallest, settings.error_rate);
    return { ...made, words: [made.verdict, ...differences.map(([words]) => words)].join("; ") };
  }

  /* How far a ratio is from 1, in logarithms: half and double are equally far. */
  const distance = (judged) => (judged.ratio === null ? 0 : Math.abs(Math.log(judged.ratio)));

  /* Of what has no ratio of latencies, no other one is told. */
  function share({ a, b, judged }, name) {
    const place = settings.figures.indexOf(name);
    const [old, now] = [a.figures[place], b.figures[place]];
    return judged.ratio && old && now ? { text: rnnbench.digits(now / old) + "×", sort: now / old, kind: "number" } : { text: "—", kind: "number" };
  }

  function line(pair, path, pages, machine) {
    const { a, b, judged } = pair;
    const page = pages.get(machine + "\n" + b.trial);
    const name = a.trial === b.trial ? b.trial : alike(b);
    const show = (row) => {
      const latency = row.latencies[path];
      const [low, high] = [Math.min(...latency[0]), Math.max(...latency[0])];
      if (!latency[0].every((value) => value > 0)) return { text: "—", kind: "number" };
      return { text: rnnbench.seconds(latency[1]), small: latency[0].length > 1 ? rnnbench.seconds(low) + " to " + rnnbench.seconds(high) : "one process", sort: latency[1], kind: "number" };
    };
    return rnnbench.row(labels, [
      { text: judged.words, kind: judged.verdict === "SLOWER" ? "bad" : judged.verdict === "FASTER" ? "good" : "" },
      page ? rnnbench.element("a", name, { href: "trials/" + page + ".html" }) : name,
      show(a),
      show(b),
      judged.ratio === null ? { text: "—", kind: "number" } : { text: judged.ratio.toFixed(3) + "×", sort: judged.ratio, kind: "number" },
      { text: judged.interval ? judged.interval[0].toFixed(3) + " to " + judged.interval[1].toFixed(3) : judged.verdict === "UNDECIDED" ? "one process" : "none", kind: "number" },
      share(pair, "build_s"),
      share(pair, "artifact_bytes"),
      share(pair, "memory_run_peak"),
    ]);
  }

  /* What two different trials have in common: what the kind does not compare of target, strategy and device, the steps of a call, the workload. */
  function alike(row) {
    const [first, ...others] = Object.values(FIELD).filter((name) => name !== FIELD[control.by.value]).map((name) => trials.texts[row[name]]);
    return first + ", " + row.chunk + (row.chunk === 1 ? " step" : " steps") + " a call; " + [trials.texts[row.workload], ...others].join(", ");
  }

  const backendOf = (row) => trials.texts[row.target].split(":")[0];

  /* In what two nights differ beside the programs, for what is compared of them. */
  function cautions(a, b, compared) {
    const told = [];
    if (a.machine !== b.machine) told.push("A and B are two machines: a ratio compares the machines as well as the programs, and has no verdict.");
    if (a.rnnbench !== b.rnnbench) told.push("rnnbench differs: " + a.rnnbench + " in A, " + b.rnnbench + " in B.");
    const [olds, news] = [a, b].map((night) => new Map(night.versions.map((number) => index.versions[number])));
    for (const backend of new Set(compared.map((pair) => backendOf(pair.b)))) {
      if (olds.get(backend) !== news.get(backend)) told.push("Versions of " + backend + " differ: " + (olds.get(backend) || "none") + " in A, " + (news.get(backend) || "none") + " in B.");
    }
    return told.join(" ");
  }

  /* Why no trial stands on both sides. */
  function nothing(a, b) {
    const offered = control.a.options;
    if (offered.length < 2) return offered[0].value ? "There is only one to choose: " + offered[0].textContent + ". Compare two of another kind." : offered[0].textContent;
    const same = control.a.value === control.b.value || (a === b && !(control.by.value in FIELD));
    return same ? "A and B are the same. Choose two." : "A and B have no measured trial in common.";
  }

  async function compare(mine) {
    rnnbench.clear(answer, table);
    caution.hidden = true;
    more.textContent = "";
    await offer(mine);
    if (mine !== turn) return;
    rnnbench.misses(form);
    const { sides, key } = plan();
    const [a, b] = sides.map(([number]) => index.nights[number]);
    if (!a || !b || control.a.value === control.b.value) {
      answer.textContent = nothing(a, b);
      return;
    }
    const [left, right] = await Promise.all(sides.map(async ([number, fits]) => read(await rnnbench.load(index.nights[number].file)).filter(fits)));
    if (mine !== turn) return;
    const path = settings.paths.indexOf(control.path.value);
    const inOneRun = control.by.value in FIELD;
    const olds = new Map(left.map((row) => [key(row), row]));
    const compared = right
      .filter((row) => olds.has(key(row)) && (a !== b || olds.get(key(row)).trial !== row.trial))
      .map((row) => ({ a: olds.get(key(row)), b: row }))
      .filter((pair) => !(pair.a.same && pair.b.same && !inOneRun))
      .map((pair) => ({ ...pair, judged: judge(pair.a, pair.b, path, a.machine !== b.machine) }))
      .filter((pair) => pair.judged);
    const counts = ORDER.map((word) => [compared.filter((pair) => pair.judged.verdict === word).length, word])
      .filter(([number, word]) => number || word !== "none")
      .map(([number, word]) => number + " " + (word === "none" ? "without a verdict" : word)).join(", ");
    const changed = right.filter((row) => olds.has(key(row)) && olds.get(key(row)).outcome !== row.outcome).length;
    answer.textContent = compared.length
      ? compared.length + (compared.length === 1 ? " comparison: " : " comparisons: ") + counts + (changed ? "; " + changed + " with another outcome" : "") + "."
      : nothing(a, b);
    caution.textContent = cautions(a, b, compared);
    caution.hidden = !caution.textContent;
    const shown = compared
      .filter((pair) => (!control.verdict.value || pair.judged.verdict === control.verdict.value) && rnnbench.has(pair.b.trial + " " + alike(pair.b), control.q.value))
      .sort((x, y) => ORDER.indexOf(x.judged.verdict) - ORDER.indexOf(y.judged.verdict) || distance(y.judged) - distance(x.judged));
    const pages = new Map(index.pages.map(([machine, trial, page]) => [machine + "\n" + trial, page]));
    rnnbench.fill(table, shown.slice(0, MOST).map((pair) => line(pair, path, pages, b.machine)));
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
