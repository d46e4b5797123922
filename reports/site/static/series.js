/* The history of one trial: a chart with the interval of each night, changes and versions. */
"use strict";
(function () {
  const form = document.querySelector('form[data-filters="series"]');
  const box = document.getElementById("chart");
  const reading = document.getElementById("reading");
  const scale = document.getElementById("scale");
  const select = form.elements.measure;
  /* Part of the largest value that the axis spans at the least (sparkline.py): noise of one per cent is no trend. */
  const LEAST_SPAN = 0.2;
  const DAYS = [1, 2, 5, 7, 14, 30, 60, 90, 180, 365, 730, 1825, 3650, 7300].map((days) => days * 86400);
  let chart;
  let tell;
  let place;

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  /* Ends of the vertical axis, with a tenth of room. It begins at 0 where the values come near to it. */
  function span(values) {
    const known = values.filter((value) => value !== null);
    if (!known.length) return [0, 1];
    const [low, high] = [Math.min(...known), Math.max(...known)];
    const missing = Math.max(0, LEAST_SPAN * high - (high - low)) / 2;
    const [from, to] = uPlot.rangeNum(low - missing, high + missing, 0.1, true);
    return [Math.max(0, from), to];
  }

  function draw(series) {
    const measure = series.measures.find((each) => each.name === select.value) || series.measures[0];
    const last = Number(form.elements.last.value) || series.started.length;
    const first = Math.max(0, series.started.length - last);
    const days = series.started.slice(first).map((started) => Date.parse(started + "Z") / 1000);
    const of = (name) => (measure[name] || measure.value).slice(first);
    const shown = rnnbench.figure[measure.unit];
    const ends = span([...of("low"), ...of("high"), ...of("value")]);
    const changes = series.changes.filter((change) => change.at >= first && (change.measure === measure.name || change.level === "machine"));
    tell = (place) => {
      const low = measure.low && measure.low[first + place];
      const interval = low === null || low === undefined ? "" : " (" + shown(low) + " to " + shown(measure.high[first + place]) + ")";
      return series.started[first + place].slice(0, 10) + ": " + shown(measure.value[first + place]) + interval + "; " + series.versions[series.version[first + place]];
    };
    const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") } };
    const options = {
      width: Math.max(280, box.clientWidth),
      height: 320,
      padding: [null, 40, null, null],
      legend: { show: false },
      scales: { x: { time: true }, y: { range: () => ends } },
      tzDate: (ts) => uPlot.tzDate(new Date(ts * 1e3), "Etc/UTC"),
      axes: [{ ...axis, space: 90, incrs: DAYS, values: (_, ticks) => ticks.map((tick) => new Date(tick * 1e3).toISOString().slice(0, 10)) }, { ...axis, size: 74, label: measure.title + " (" + (measure.unit === "s" ? "time a call" : "bytes") + ")", values: (_, ticks) => ticks.map(shown) }],
      series: [
        {},
        { stroke: "transparent", width: 0, points: { show: false } },
        { stroke: "transparent", width: 0, points: { show: false } },
        { stroke: colour("--link"), width: 1.5, points: { show: days.length < 100, size: 5 } },
      ],
      bands: [{ series: [2, 1], fill: colour("--band") }],
      cursor: { points: { size: 8 } },
      hooks: {
        draw: [(u) => mark(u, changes, days, first, series)],
        setCursor: [(u) => read(typeof u.cursor.idx === "number" ? u.cursor.idx : days.length - 1)],
      },
    };
    if (measure.name === "build") options.axes[1].label = measure.title;
    scale.textContent = "The vertical axis begins at " + (ends[0] > 0 ? shown(ends[0]) + ", and not at 0." : "0.");
    if (chart) chart.destroy();
    box.replaceChildren();
    chart = new uPlot(options, [days, of("low"), of("high"), of("value")], box);
    box.setAttribute("aria-valuemax", days.length - 1);
    read(days.length - 1);
  }

  /* Say a night in words. */
  function read(night) {
    place = night;
    reading.textContent = tell(night);
    box.setAttribute("aria-valuenow", night);
    box.setAttribute("aria-valuetext", reading.textContent);
  }

  /* The arrow keys lead from night to night, as the mouse does. */
  function step(event) {
    const last = chart.data[0].length - 1;
    const to = { ArrowLeft: place - 1, ArrowRight: place + 1, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const night = Math.max(0, Math.min(last, to));
    chart.setCursor({ left: chart.valToPos(chart.data[0][night], "x"), top: 0 });
    read(night);
  }

  function mark(u, changes, days, first, series) {
    const { left, top, width, height } = u.bbox;
    const ctx = u.ctx;
    ctx.save();
    ctx.lineWidth = 2 * devicePixelRatio;
    for (const change of changes) {
      const x = u.valToPos(days[change.at - first], "x", true);
      ctx.strokeStyle = colour(change.cause === "program" ? "--bad" : "--quiet");
      ctx.setLineDash(change.cause === "program" ? [] : [6, 6]);
      ctx.beginPath();
      ctx.moveTo(x, top);
      ctx.lineTo(x, top + height);
      ctx.stroke();
    }
    ctx.setLineDash([]);
    ctx.fillStyle = colour("--note");
    for (let place = 1; place < days.length; place += 1) {
      if (series.version[first + place] !== series.version[first + place - 1]) ctx.fillRect(u.valToPos(days[place], "x", true) - 2, top + height - 8, 4, 8);
    }
    ctx.restore();
  }

  /* Values are integers of a common scale; nights are numbers of the list of their dates. */
  function scaled(series, nights) {
    series.started = series.nights.map((number) => nights[number]);
    for (const measure of series.measures) {
      for (const column of ["value", "low", "high"]) {
        if (measure[column]) measure[column] = measure[column].map((value) => (value === null ? null : rnnbench.decimal(value, measure.scale)));
      }
    }
    return series;
  }

  Promise.all([rnnbench.load(box.dataset.series), rnnbench.load(box.dataset.nights)]).then(function ([loaded, nights]) {
    const series = scaled(loaded, nights);
    for (const [name, value] of [["role", "slider"], ["tabindex", 0], ["aria-label", "Night of the chart"], ["aria-valuemin", 0]]) box.setAttribute(name, value);
    select.replaceChildren(...series.measures.map((measure) => rnnbench.element("option", measure.title, { value: measure.name })));
    select.dataset.initial = series.measures[0].name;
    rnnbench.onState(function (current) {
      rnnbench.show(form, current);
      rnnbench.misses(form);
      draw(series);
    });
    box.addEventListener("keydown", step);
    window.addEventListener("themed", () => draw(series));
    let width = box.clientWidth;
    window.addEventListener("resize", function () {
      if (box.clientWidth !== width) draw(series);
      width = box.clientWidth;
    });
  }).catch(function (error) {
    box.hidden = true;
    rnnbench.failed(reading)(error);
  });
})();
