// Texts: all maps of one text, one above the other. Only pages of texts have this part, which adds itself.

const kinds = {token: 0, between: 1, spelled: 2, special: 3, beyond: 4};
const highlight = stops.diverging.slice(1, -1); // without the darkest ends, on which words are hard to read

const reading = {
  stage: null,
  fixed: {},
  across: "",
  item: "",
  scale: "own",
  special: "hide",
  curve: "",
  response: "",
  score: "",
  step: 0,
  span: -1,
};

const textControls = h("div", {class: "controls"});
const textNote = h("p", {class: "image-note"});
const textScale = h("p", {class: "note"});
const textPlace = h("div", {class: "texts"});

const readable = (cell, without) =>
  reading.stage.axes.every((axis, i) => axis === without || reading.fixed[axis] === cell.ids[i]);

const textsShown = () => {
  const cell = reading.stage.cells.find((c) => readable(c, reading.across));
  return cell ? model.items[cell.items] : [];
};

// The cells that are shown, with the names above them.
function mapsShown() {
  const {stage, across} = reading;
  const at = stage.axes.indexOf(across);
  if (at < 0) return stage.cells.map((c) => [c, c.ids.join(" ") || stage.stage]);
  const ids = present(stage.cells, stage.axes, across);
  const best = bestOf(across, ids);
  return [...new Set([...best, ...ids])]
    .map((id) => [stage.cells.find((c) => c.ids[at] === id && readable(c, across)), id])
    .filter(([c]) => c && positionOf(c.items, reading.item) >= 0);
}

function spansOf(cell) {
  const list = model.texts.words[cell.words];
  const at = positionOf(list.items, reading.item);
  return at < 0 ? [] : list.texts[at];
}

// The value of a span: the sum over its tokens, null if one of them has none.
function sumOf(cell, span) {
  const values = cell.values[positionOf(cell.items, reading.item)];
  let sum = 0;
  for (const k of span.n || []) {
    if (values[k] === null || values[k] === undefined) return null;
    sum += values[k];
  }
  return sum;
}

const curveOf = (cell) => cell.curves.find((c) => stageOf(c.cell) === reading.curve);
const stageOf = (cell) => cell.replace(/\[.*$/s, "");

// The places of a text's spans in the order in which they are removed, from 1: by the curve or, without one, by
// their values from the largest. Special tokens have none.
function placesOf(cell, spans) {
  const curve = curveOf(cell);
  const ranks = curve && curve.ranks[positionOf(cell.items, reading.item)];
  if (ranks && ranks.length) {
    return spans.map((s) => {
      const list = (s.n || []).map((k) => ranks[k]).filter((r) => r >= 0);
      return list.length ? 1 + Math.min(...list) : 0;
    });
  }
  const order = spans
    .map((s, i) => [sumOf(cell, s), i])
    .filter(([x, i]) => x !== null && spans[i].n && spans[i].k !== kinds.special)
    .sort((a, b) => b[0] - a[0] || a[1] - b[1]);
  const places = spans.map(() => 0);
  order.forEach(([, i], place) => {
    places[i] = place + 1;
  });
  return places;
}

// What is left of a text at a step: which spans are gone, and the model's response.
function stateAt(cell, spans) {
  const at = positionOf(cell.items, reading.item);
  const curve = curveOf(cell);
  const places = placesOf(cell, spans);
  const counted = spans.map((s) => Boolean(s.n) && s.k !== kinds.special);
  const total = counted.filter(Boolean).length;
  if (!curve || !curve.changed[at].length) {
    const k = Math.round((reading.step / 100) * total);
    return {places, total, gone: spans.map((_, i) => counted[i] && places[i] > 0 && places[i] <= k), changed: k};
  }
  const steps = curve.changed[at];
  const step = Math.round((reading.step / 100) * (steps.length - 1));
  const k = steps[step];
  const tokens = spans.filter((_, i) => counted[i]).reduce((n, s) => n + s.n.length, 0);
  const goes = (i) => {
    const place = places[i] - 1; // −1 for none
    if (curve.order === "insertion") return place < 0 || place >= k;
    if (curve.order === "lerf") return place >= tokens - k;
    return k === tokens || (place >= 0 && place < k);
  };
  const row = curve.values[at] && curve.values[at][curve.responses.indexOf(reading.response)];
  return {
    places,
    total: tokens,
    gone: spans.map((_, i) => counted[i] && goes(i)),
    changed: k,
    inserted: curve.order === "insertion",
    step,
    row,
    response: row && row[step],
  };
}

// A small curve of the responses, with the step that is shown.
function sparkline({row, step}) {
  const known = row.filter((y) => y !== null);
  if (known.length < 2) return null;
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const x = (i) => 3 + (114 * i) / (row.length - 1);
  const y = (v) => 25 - (22 * (v - low)) / (high - low || 1);
  const points = row.map((v, i) => (v === null ? "" : `${x(i).toFixed(1)},${y(v).toFixed(1)}`)).filter(Boolean);
  const dot = row[step] !== null && svg("circle", {cx: x(step), cy: y(row[step]), r: 3});
  return svg(
    "svg",
    {class: "spark", viewBox: "0 0 120 28", width: 120, height: 28, "aria-hidden": "true"},
    svg("polyline", {points: points.join(" "), fill: "none"}),
    dot,
  );
}

// The largest magnitude of a token that isn't special.
const endOf = (cell) =>
  spansOf(cell).reduce(
    (end, s) => (s.n && s.k !== kinds.special ? Math.max(end, Math.abs(sumOf(cell, s) || 0)) : end),
    0,
  );

// The colour of text with the larger contrast, as WCAG defines it: at least 4.5 on any ground.
function inkOn(colour) {
  const [r, g, b] = colour.map((v) => (v <= 10 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b < 0.179 ? "#fff" : "#000";
}

function paintToken(e, x, end, gone) {
  e.classList.toggle("gone", gone);
  if (gone || !end) return;
  const colour = x === null ? [240, 240, 240] : colourAt(highlight, (Math.min(Math.max(x / end, -1), 1) + 1) / 2);
  e.style.backgroundColor = `rgb(${colour.join(",")})`;
  e.style.color = inkOn(colour);
}

// A text in the colours of a map.
function textFigure(cell, name, end) {
  const spans = spansOf(cell);
  const state = stateAt(cell, spans);
  const values = spans.map((s) => sumOf(cell, s));
  const words = spans.map((s, i) => {
    if (s.k === kinds.special && reading.special === "hide") return null;
    if (!s.n) return s.k === kinds.beyond ? h("span", {class: "beyond"}, s.t) : s.t;
    const inText = s.k === kinds.token; // others don't decide the direction of the text
    const e = h(inText ? "span" : "bdi", {class: "token", "data-span": String(i)}, s.t);
    e.classList.toggle("spelled", !inText);
    paintToken(e, values[i], end, state.gone[i]);
    return e;
  });
  const about = h("p", {class: "about"});
  const tell = () => {
    const i = reading.span;
    const s = spans[i];
    if (!s || !s.n) return fill(about, "\u00a0");
    const value = values[i] === null ? "undefined" : signed(values[i]);
    const place = state.places[i] ? `, rank ${state.places[i]} of ${state.total}` : "";
    const several = s.n.length > 1 ? `, the sum of ${s.n.length} tokens` : "";
    return fill(about, h("bdi", {}, s.t), `: ${value}${place}${several}`);
  };
  tell();
  const text = h("p", {class: "tokens", dir: "auto", tabindex: "0", "aria-label": `tokens by ${name}`}, words);
  const old = view.score;
  view.score = reading.score;
  const score = scoreOf(reading.stage, cell, reading.item);
  view.score = old;
  const has = state.response !== undefined && state.response !== null;
  const left = state.inserted ? "with" : "without";
  const response =
    (has || reading.step > 0) &&
    `${left} ${state.changed} of ${state.total} tokens` +
      (has ? `: ${reading.response} ${brief(state.response, 3)}` : "");
  const figure = h(
    "figure",
    {class: "text-figure"},
    h(
      "figcaption",
      {},
      h("strong", {}, name),
      score && h("span", {class: "score"}, score),
      h("span", {class: "ends"}, end ? "±" + brief(end, 3) : "0"),
      has && sparkline(state),
      response && h("span", {class: "score response"}, response),
    ),
    h("div", {}, text, about),
  );
  return {figure, text, tell, spans};
}

function drawTexts() {
  const list = mapsShown();
  const ends = list.map(([cell]) => endOf(cell));
  const most = Math.max(0, ...ends);
  const figures = list.map(([cell, name], i) =>
    textFigure(cell, name, reading.scale === "common" ? most : ends[i]),
  );
  const point = (i) => {
    reading.span = i;
    for (const f of figures) {
      for (const e of f.text.querySelectorAll(".now")) e.classList.remove("now");
      const e = f.text.querySelector(`[data-span="${i}"]`);
      if (e) e.classList.add("now");
      f.tell();
    }
  };
  for (const f of figures) {
    f.text.addEventListener("pointerover", (event) => {
      const i = event.target.dataset.span;
      if (i !== undefined) point(Number(i));
    });
    f.text.addEventListener("keydown", (event) => {
      const by = {ArrowRight: 1, ArrowLeft: -1}[event.key];
      if (!by) return;
      const all = [...f.text.querySelectorAll(".token")].map((e) => Number(e.dataset.span));
      if (!all.length) return;
      const at = all.indexOf(reading.span);
      point(all[at < 0 ? 0 : (at + by + all.length) % all.length]);
      say(figures.map((g) => g.figure.querySelector(".about").textContent).join("; "));
      event.preventDefault();
    });
  }
  const [cell] = list[0] || [];
  const ids = textsShown();
  fill(
    textNote,
    `text ${ids.indexOf(reading.item) + 1} of ${ids.length}: `,
    h("strong", {}, reading.item),
    cell && classOf(cell, reading.item) ? `; ${classOf(cell, reading.item)}` : "",
  );
  fill(textPlace, ...figures.map((f) => f.figure));
  const bar = h("canvas", {class: "bar", width: 120, height: 10, "aria-hidden": "true"});
  const g = bar.getContext("2d");
  for (let x = 0; x < 120; x++) {
    g.fillStyle = `rgb(${colourAt(highlight, x / 119).join(",")})`;
    g.fillRect(x, 0, 1, 10);
  }
  fill(
    textScale,
    bar,
    " ",
    reading.scale === "common" ? `all maps: ±${brief(most, 3)}; ` : "each map has its own ends, printed with its name; ",
    "red is evidence for the class, blue against it. Point at a word for its value and rank.",
  );
}

function setTexts(name) {
  const stage = model.texts.stages.find((s) => s.stage === name);
  reading.stage = stage;
  const axes = stage.axes;
  reading.across = axes.includes(model.rank) ? model.rank : axes.find((a) => a !== "version") || "";
  reading.fixed = {};
  for (const axis of axes) {
    const ids = present(stage.cells, axes, axis);
    reading.fixed[axis] = axis === "version" ? "now" : bestOf(axis, ids)[0];
  }
  if (!textsShown().includes(reading.item)) reading.item = textsShown()[0] || "";
  const names = curveNames();
  reading.curve = names.find((n) => n.includes("deletion")) || names[0] || "";
  reading.response = responseNames()[0] || "";
  const usual = scoresOf(stage);
  reading.score = (
    usual.find((s) => model.ranked.includes(s.name)) ||
    usual.find((s) => competing().includes(s)) ||
    usual[0] || {name: ""}
  ).name;
}

const curveNames = () => [
  ...new Set(reading.stage.cells.flatMap((c) => c.curves.map((x) => stageOf(x.cell)))),
];
const responseNames = () => {
  const curve = reading.stage.cells.flatMap((c) => c.curves).find((x) => stageOf(x.cell) === reading.curve);
  return curve ? curve.responses.filter((r) => r !== "correct") : [];
};

function stepText(by) {
  const ids = textsShown();
  reading.item = ids[(ids.indexOf(reading.item) + by + ids.length) % ids.length];
  drawTextControls();
  drawTexts();
  say(`text ${reading.item}`);
}

function drawTextControls() {
  const {stage} = reading;
  const redraw = () => {
    drawTextControls();
    drawTexts();
  };
  const set = (key, all) => (v) => {
    reading[key] = v;
    if (all) redraw();
    else drawTexts();
  };
  const pairs = (list) => list.map((x) => [x, x]);
  const parts = [];
  if (model.texts.stages.length > 1)
    parts.push(
      choice("maps", pairs(model.texts.stages.map((s) => s.stage)), stage.stage, (v) => {
        setTexts(v);
        redraw();
      }),
    );
  for (const axis of stage.axes) {
    const ids = present(stage.cells, stage.axes, axis);
    if (axis === reading.across || ids.length < 2) continue;
    parts.push(
      choice(axis, pairs(ids), reading.fixed[axis], (v) => {
        reading.fixed[axis] = v;
        drawTexts();
      }),
    );
  }
  parts.push(choice("text", pairs(textsShown()), reading.item, set("item")));
  const stepper = (by, text) =>
    h("button", {type: "button", "data-key": text, onclick: () => stepText(by)}, text);
  parts.push(h("span", {class: "control"}, stepper(-1, "previous text"), stepper(1, "next text")));
  const scores = scoresOf(stage);
  if (scores.length)
    parts.push(
      choice(
        "score",
        scores.map((s) => [s.name, s.name + arrowOf(s)]),
        reading.score,
        set("score"),
      ),
    );
  const two = (label, key, options) => parts.push(modes(label, options, reading[key], set(key)));
  two("colour scale", "scale", [
    ["own", "own scale"],
    ["common", "common scale"],
  ]);
  two("special tokens", "special", [
    ["hide", "no special tokens"],
    ["show", "special tokens"],
  ]);
  const names = curveNames();
  const insertion = stage.cells.some((c) => (curveOf(c) || {}).order === "insertion");
  if (names.length > 1) parts.push(choice("curve", pairs(names), reading.curve, set("curve", true)));
  if (responseNames().length > 1)
    parts.push(choice("response", pairs(responseNames()), reading.response, set("response")));
  parts.push(
    range(insertion ? "tokens inserted" : "tokens removed", reading.step, (v) => {
      reading.step = v;
      drawTexts();
    }),
  );
  fill(textControls, ...parts);
}

// What shows the text that a score rates, with the maps of its cell; null if the page hasn't got it.
show.text = (score, c, item) => {
  for (const stage of model.texts.stages) {
    if (!stage.axes.every((axis) => axis === "version" || score.axes.includes(axis))) continue;
    const cell = stage.cells.find((m) => agree(stage.axes, m.ids, score.axes, c.ids) && isNow(stage, m));
    if (cell && positionOf(cell.items, item) >= 0) return () => readText(stage, cell, item, score.name);
  }
  return null;
};

function readText(stage, cell, item, score) {
  setTexts(stage.stage);
  stage.axes.forEach((axis, i) => {
    reading.fixed[axis] = cell.ids[i];
  });
  reading.item = item;
  if (scoresOf(stage).some((s) => s.name === score)) reading.score = score;
  drawTextControls();
  drawTexts();
  goTo("texts-title");
}

// Adds the part to the page, behind its maps of images or in the place of these.
function addTextsPart() {
  setTexts(model.texts.stages[0].stage);
  const e = section("texts", "Texts", textControls, textNote, textScale, textPlace);
  drawTextControls();
  drawTexts();
  const fields = ["scale", "special", "curve", "response", "score", "step"];
  remember(
    "texts",
    () => ({
      stage: reading.stage.stage,
      across: reading.across,
      fixed: Object.entries(reading.fixed),
      item: reading.item,
      ...Object.fromEntries(fields.map((k) => [k, reading[k]])),
    }),
    (f) => {
      if (model.texts.stages.some((s) => s.stage === f.stage)) setTexts(f.stage);
      const {axes, cells} = reading.stage;
      if (axes.includes(f.across)) reading.across = f.across;
      for (const [axis, id] of f.fixed || [])
        if (axes.includes(axis) && present(cells, axes, axis).includes(id)) reading.fixed[axis] = id;
      if (textsShown().includes(f.item)) reading.item = f.item;
      const known = {
        scale: ["own", "common"],
        special: ["hide", "show"],
        curve: curveNames(),
        response: responseNames(),
        score: scoresOf(reading.stage).map((s) => s.name),
      };
      for (const k of fields) if (known[k] && known[k].includes(f[k])) reading[k] = f[k];
      if (f.step >= 0 && f.step <= 100) reading.step = f.step;
      drawTextControls();
      drawTexts();
    },
  );
  const maps = document.getElementById("maps");
  const link = document.querySelector('nav a[href="#maps"]');
  maps.after(e);
  link.after(h("a", {href: "#texts"}, "Texts"));
  if (model.maps.length) return;
  maps.remove();
  link.remove();
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === "SELECT") return;
    const by = {n: 1, p: -1}[event.key];
    if (!by) return;
    stepText(by);
    event.preventDefault();
  });
  document.querySelector("footer .keys").textContent = "Keys: n and p show the next and previous text.";
}

addTextsPart();
