/* What all pages share: theme, data files on demand, filters that live in the address, tables that sort.
   Text is set by textContent only. */
"use strict";
const rnnbench = (function () {
  const root = document.documentElement;
  const stored = new Map();
  const asked = new Map();
  const listeners = [];

  /* Data files call this. */
  function put(name, value) {
    stored.set(name, value);
  }

  /* The content of data/<name>.js. A script, since nothing else can be loaded from file://. A file that is missing or cut off fails for all that wait. */
  function load(name) {
    if (!asked.has(name)) asked.set(name, fetched(name));
    return asked.get(name);
  }
  function fetched(name) {
    return new Promise(function (resolve, reject) {
      const script = document.createElement("script");
      const failed = () => reject(new Error("the data file " + name + " could not be loaded"));
      script.src = root.dataset.root + "data/" + encodeURIComponent(name) + ".js";
      script.onload = () => (stored.has(name) ? resolve(stored.get(name)) : failed());
      script.onerror = failed;
      document.head.append(script);
    });
  }

  function element(tag, text, attributes) {
    const made = document.createElement(tag);
    if (text !== undefined && text !== null) made.textContent = text;
    for (const [name, value] of Object.entries(attributes || {})) made.setAttribute(name, value);
    return made;
  }

  /* A row of a stacked table. A cell is a text, a node, or {text, small, sort, kind}. */
  function row(labels, cells) {
    const made = document.createElement("tr");
    cells.forEach(function (cell, index) {
      const plain = cell === null || typeof cell !== "object" || cell instanceof Node ? { text: cell } : cell;
      const td = element("td", undefined, { "data-label": labels[index] });
      if (plain.kind) td.className = plain.kind;
      if (plain.sort !== undefined && plain.sort !== null) td.dataset.sort = plain.sort;
      if (plain.text instanceof Node) td.append(plain.text);
      else td.textContent = plain.text;
      /* A narrow screen parts no figure from its unit. */
      if (plain.small) td.append(element("small", plain.small.replace(/ (?=(?:[nµm]?s|[KMGT]iB|B)(?: |$))/g, "\u00a0")));
      made.append(td);
    });
    return made;
  }

  function labels(table) {
    return Array.from(table.tHead.rows[0].cells, (cell) => cell.textContent);
  }

  /* ---- figures, as reports/units.py writes them ---- */
  function digits(value) {
    if (value === 0) return "0";
    const places = Math.max(0, Math.min(20, 2 - Math.floor(Math.log10(Math.abs(value)) + 2e-4)));
    const times = 10 ** places;
    /* Halfway between two figures the even one is taken, as there; toFixed takes the larger one. Only a whole number of these fractions is exactly halfway. */
    const halfway = (value * times) % 1 === 0.5 && Number.isInteger(value * 2 ** (places + 1));
    return (halfway ? (2 * Math.round((value * times) / 2)) / times : value).toFixed(places);
  }
  /* An integer of a scale, as the number that its digits say: a product of the two may be its neighbour. */
  function decimal(whole, power) {
    return Number(whole + "e" + power);
  }
  function seconds(value) {
    if (value === null || value === undefined) return "—";
    for (const [size, unit] of [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]]) {
      if (value >= size * 0.9995) return digits(value / size) + " " + unit;
    }
    return digits(value / 1e-9) + " ns";
  }
  function nbytes(value) {
    if (value === null || value === undefined) return "—";
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let power = 0;
    while (value >= 1024 && power < units.length - 1) {
      value /= 1024;
      power += 1;
    }
    return (power ? digits(value) : Math.round(value)) + " " + units[power];
  }
  const figure = { s: seconds, B: nbytes };

  /* ---- the address: #name=value&name=value. A link to a place of the page (#reason-1) leaves the choices as they were. ---- */
  let choices = "";
  function state() {
    const hash = location.hash.slice(1);
    if (!hash || hash.includes("=")) choices = hash;
    return new URLSearchParams(choices);
  }
  /* A change that follows another one of the same text takes its place: the back button leads to the page before the text. */
  function change(changes, follows) {
    const next = state();
    for (const [name, value] of Object.entries(changes)) {
      if (value === null) next.delete(name);
      else next.set(name, value);
    }
    const hash = "#" + next.toString();
    if (hash === location.hash || (hash === "#" && !location.hash)) return;
    if (follows) location.replace(hash);
    else location.hash = hash;
  }
  function onState(listener) {
    listeners.push(listener);
    listener(state());
  }
  window.addEventListener("hashchange", () => listeners.forEach((listener) => listener(state())));

  /* ---- filters ---- */
  function controls(form) {
    return Array.from(form.elements).filter((control) => control.name);
  }
  function initial(control) {
    return control.dataset.initial || "";
  }
  /* Sets the controls to what the address says, and the address to what a person chooses. A choice clears those that are made among what it offers. */
  function bind(form) {
    for (const control of controls(form)) {
      control.dataset.initial = control.value;
      const text = control.tagName !== "SELECT";
      let typing = false;
      control.addEventListener(text ? "input" : "change", function () {
        const cleared = (control.dataset.clears || "").split(" ").filter(Boolean).map((name) => [name, null]);
        change({ ...Object.fromEntries(cleared), [control.name]: control.value === initial(control) ? null : control.value }, typing);
        typing = text;
      });
      control.addEventListener("blur", () => (typing = false));
    }
    form.addEventListener("submit", (event) => event.preventDefault());
    onState((current) => show(form, current));
  }
  function show(form, current) {
    for (const control of controls(form)) {
      const value = current.has(control.name) ? current.get(control.name) : initial(control);
      if (control.value !== value) control.value = value;
      if (control.tagName === "SELECT" && control.selectedIndex < 0) control.value = initial(control);
    }
  }
  /* Says which values of the address a form does not have: its link may be of another state of the site. */
  function misses(form) {
    const current = state();
    const missed = controls(form).filter((control) => control.tagName === "SELECT" && !control.labels[0].hidden && current.has(control.name) && control.value !== current.get(control.name));
    document.querySelectorAll(".misses").forEach((told) => told.remove());
    if (!missed.length) return;
    const named = missed.map((control) => control.labels[0].firstChild.textContent.trim() + " '" + current.get(control.name).slice(0, 100) + "'");
    form.after(element("p", "The address asks for what this page does not have: " + named.join(", ") + ". What the form says is shown instead.", { class: "warning misses" }));
  }
  function values(form) {
    return Object.fromEntries(controls(form).map((control) => [control.name, control.value]));
  }

  /* Whether a text has all words that a visitor looks for, in any order: "gru h256". */
  function has(text, words) {
    const searched = text.toLowerCase();
    return words.toLowerCase().split(/\s+/).every((word) => searched.includes(word));
  }

  /* Hides what does not match: elements with data-<name>, and rows and items by their text for q. */
  function filterStatic(form) {
    const name = form.dataset.filters;
    const targets = Array.from(document.querySelectorAll('[data-filter="' + name + '"]'));
    if (!targets.length) return;
    onState(function () {
      misses(form);
      const wanted = Object.entries(values(form)).filter(([, value]) => value);
      let shown = 0;
      const parts = targets.flatMap((target) =>
        target.tagName === "TABLE" ? Array.from(target.tBodies[0].rows) : target.tagName === "UL" ? Array.from(target.children) : [target],
      );
      for (const part of parts) {
        const fits = wanted.every(([key, value]) =>
          key === "q" ? has(part.textContent, value) : part.dataset[key] === value,
        );
        part.hidden = !fits;
        shown += fits;
      }
      const none = document.querySelector("p.none");
      if (none) none.hidden = shown > 0;
    });
  }

  /* ---- sorting ---- */
  function sortable(table, number) {
    const key = "sort" + (number || "");
    const heads = Array.from(table.tHead.rows[0].cells);
    heads.forEach(function (head, column) {
      const button = element("button", head.textContent, { type: "button" });
      head.replaceChildren(button);
      button.addEventListener("click", function () {
        const down = head.getAttribute("aria-sort") === "ascending";
        change({ [key]: (down ? "-" : "") + column });
      });
    });
    const body = table.tBodies[0];
    let wanted = "";
    let unsorted = Array.from(body.rows);
    function apply() {
      heads.forEach((head) => head.removeAttribute("aria-sort"));
      body.append(...unsorted);
      if (!wanted) return;
      const down = wanted.startsWith("-");
      const column = Number(wanted.replace("-", ""));
      if (!heads[column]) return;
      heads[column].setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = Array.from(body.rows, (line, index) => [value(line.cells[column]), index, line]);
      /* What has no figure stands behind all that have one, up and down. */
      rows.sort(function ([a, i], [b, j]) {
        const figures = typeof a === "number";
        if (figures !== (typeof b === "number")) return figures ? -1 : 1;
        const order = figures ? a - b : a.localeCompare(b);
        return (down ? -order : order) || i - j;
      });
      body.append(...rows.map(([, , line]) => line));
    }
    onState(function (current) {
      wanted = current.get(key) || "";
      apply();
    });
    table.addEventListener("rows", function () {
      unsorted = Array.from(body.rows);
      apply();
    });
  }
  function value(cell) {
    if (!cell) return "";
    if (cell.dataset.sort !== undefined) return Number(cell.dataset.sort);
    const text = cell.textContent.trim();
    const number = /^[✓✗]?\s*([-+]?[\d,]+(?:\.\d+)?(?:e[-+]?\d+)?)\s*(?:×|%|$)/.exec(text);
    return number ? Number(number[1].replace(/,/g, "")) : text;
  }

  /* Fills a table with rows, keeping its order. */
  function fill(table, rows) {
    table.tBodies[0].replaceChildren(...rows);
    table.hidden = false;
    table.dispatchEvent(new Event("rows"));
    reachable();
  }

  /* Shows nothing of an earlier choice while the data of a new one load. An answer without a text says that they load (site.css). */
  function clear(answer, table) {
    answer.textContent = "";
    table.hidden = true;
  }

  /* A region that scrolls is reached by the keyboard. One around a table has the table's name, and says that it is not its section. */
  function reachable() {
    document.querySelectorAll(".scroll, .document table, pre").forEach(function (region) {
      const scrolls = region.scrollWidth > region.clientWidth;
      const table = region.matches(".scroll") && region.querySelector("table[aria-labelledby]");
      const heading = table && document.getElementById(table.getAttribute("aria-labelledby"));
      const named = heading ? { role: "region", "aria-label": heading.textContent.trim() + ": table" } : {};
      for (const [name, value] of Object.entries({ tabindex: 0, ...named })) {
        if (scrolls) region.setAttribute(name, value);
        else region.removeAttribute(name);
      }
    });
  }

  /* ---- theme ---- */
  const button = document.getElementById("theme");
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  function dark() {
    return root.dataset.theme ? root.dataset.theme === "dark" : system.matches;
  }
  function themed() {
    button.textContent = dark() ? "Light" : "Dark";
    window.dispatchEvent(new Event("themed"));
  }
  button.hidden = false;
  button.addEventListener("click", function () {
    root.dataset.theme = dark() ? "light" : "dark";
    try {
      localStorage.setItem("rnnbench-theme", root.dataset.theme);
    } catch (error) {
      /* Storage is not allowed here: the theme holds for this page. */
    }
    themed();
  });
  system.addEventListener("change", themed);
  window.matchMedia("print").addEventListener("change", themed);
  themed();

  /* Paper has no controls: what they are set to stands there in words. The overview prints every model. */
  function printed(form) {
    if (form.dataset.filters === "fastest") return;
    const line = element("p", "", { class: "chosen" });
    form.after(line);
    window.addEventListener("beforeprint", function () {
      const set = Array.from(form.querySelectorAll("label:not([hidden])")).filter((label) => label.control && label.control.value);
      const shown = (control) => (control.selectedOptions ? control.selectedOptions[0].textContent : control.value);
      line.textContent = set.map((label) => label.firstChild.textContent.trim() + ": " + shown(label.control)).join("; ");
    });
  }

  /* A screen reader lists tables by name: that of each is the heading above it. */
  function named() {
    let heading = null;
    document.querySelectorAll("main :is(h1, h2, h3, table)").forEach(function (each, number) {
      if (each.tagName !== "TABLE") heading = each;
      else if (heading) each.setAttribute("aria-labelledby", (heading.id = heading.id || "heading-" + number));
    });
  }

  /* uPlot asks for numbers in the browser's language. WebKit names one that is none ("C") where the system has no locale. */
  function spoken() {
    try {
      Intl.getCanonicalLocales(navigator.language);
    } catch (error) {
      Object.defineProperty(navigator, "language", { value: root.lang, configurable: true });
    }
  }

  function start() {
    spoken();
    named();
    document.querySelectorAll("form[data-filters]").forEach(function (form) {
      bind(form);
      filterStatic(form);
      printed(form);
    });
    /* On a phone each cell stands beside the name of its column. */
    document.querySelectorAll("table.stack, table.heat").forEach(function (table) {
      const names = labels(table);
      for (const body of table.tBodies) for (const line of body.rows) Array.from(line.cells, (cell, index) => (cell.dataset.label = names[index]));
    });
    document.querySelectorAll("table[data-sortable]").forEach(sortable);
    onState(reachable);
    window.addEventListener("resize", reachable);
  }
  function failed(where) {
    return (error) => {
      where.textContent = "Nothing can be shown: " + error.message + ". Reload the page: the site may be newer than the page. If that does not help, copy the whole folder of the site, or make it again.";
    };
  }
  return { put, load, element, row, labels, figure, seconds, nbytes, digits, decimal, state, change, onState, values, bind, show, misses, has, fill, clear, start, failed };
})();
rnnbench.start();
