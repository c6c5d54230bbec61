// Curves: tables with a mean and its interval at each point, drawn; the values stand under the pointer.

const lineColours = [
  "#0072b2",
  "#d55e00",
  "#009e73",
  "#cc79a7",
  "#56b4e9",
  "#e69f00",
  "#7a4fb5",
  "#8a7a00",
  "#9c3b3b",
  "#4d4d4d",
  "#2f8f8f",
  "#b0004d",
  "#5b7f00",
  "#a0522d",
  "#666fd0",
];

const curveTables = () =>
  model.tables.filter((t) => {
    const names = t.columns.map((c) => c.name);
    const at = names.indexOf("mean");
    return (
      at > 0 &&
      names[at + 1] === "low" &&
      names[at + 2] === "high" &&
      t.columns[at - 1].number &&
      t.columns.some((c) => !c.number) &&
      ["share", "step", "x", "point", "threshold"].includes(names[at - 1])
    );
  });

// Round numbers within a range, four to eight of them.
function ticks(least, most) {
  if (!(most > least)) return [least];
  const power = 10 ** Math.floor(Math.log10(most - least));
  const size = [0.1, 0.2, 0.25, 0.5, 1, 2].map((k) => k * power).find((k) => (most - least) / k <= 8);
  const list = [];
  for (let i = Math.ceil(least / size - 1e-9); i * size <= most + 1e-9 * size; i++)
    list.push(Number((i * size).toPrecision(9)));
  return list;
}

function curves() {
  const tables = curveTables();
  if (!tables.length) return null;
  const notes = (model.unshown || []).map((t) => h("p", {class: "note"}, t));
  return section("curves", "Curves", tables.map(curveChart), notes);
}

function curveChart(t) {
  const names = t.columns.map((c) => c.name);
  const mean = names.indexOf("mean");
  const keys = t.columns.map((c, i) => i).filter((i) => !t.columns[i].number);
  const ids = (k) => {
    const found = new Set(t.rows.map((r) => r[k]));
    const known = idsOf(names[k]).filter((id) => found.has(id));
    return known.concat([...found].filter((id) => !known.includes(id)));
  };
  const state = {
    line: keys.find((k) => names[k] === model.rank) ?? keys[keys.length - 1],
    fixed: {},
    at: -1,
    near: "", // the line that the pointer or the arrow keys chose
    item: "", // the image of which it is shown what was replaced
  };
  for (const k of keys) state.fixed[k] = ids(k)[0];
  const controls = h("div", {class: "controls"});
  const place = h("div", {});
  const figure = removedFigure(t);
  const axes = keys.map((k) => names[k]);
  // What is known of the lines: of each the cell that it is of.
  const removals = () =>
    ids(state.line).map((id) => removalOf(t, axes, keys.map((k) => (k === state.line ? id : state.fixed[k]))));
  const items = () => {
    const r = removals().find(Boolean);
    return r ? model.items[r.items] : [];
  };
  function draw() {
    if (!items().includes(state.item)) state.item = items()[0] || "";
    if (items().length && !ids(state.line).includes(state.near))
      state.near = bestOf(names[state.line], ids(state.line))[0];
    fill(
      controls,
      keys.length > 1 &&
        choice(
          "lines",
          keys.map((k) => [k, names[k]]),
          state.line,
          (v) => {
            state.line = Number(v);
            draw();
          },
        ),
      keys
        .filter((k) => k !== state.line && ids(k).length > 1)
        .map((k) =>
          choice(
            names[k],
            ids(k).map((id) => [id, id]),
            state.fixed[k],
            (v) => {
              state.fixed[k] = v;
              drawChart();
            },
          ),
        ),
      items().length > 0 &&
        choice(
          "image",
          items().map((id) => [id, id]),
          state.item,
          (v) => {
            state.item = v;
            drawChart();
          },
        ),
    );
    drawChart();
  }
  function drawChart() {
    const rows = t.rows.filter((r) => keys.every((k) => k === state.line || r[k] === state.fixed[k]));
    const lines = ids(state.line)
      .map((id, i) => ({
        id,
        colour: lineColours[i % lineColours.length],
        dashed: i >= lineColours.length,
        points: rows
          .filter((r) => r[state.line] === id && r[mean] !== "")
          .map((r) => ({
            x: Number(r[mean - 1]),
            y: Number(r[mean]),
            low: r[mean + 1] === "" ? null : Number(r[mean + 1]),
            high: r[mean + 2] === "" ? null : Number(r[mean + 2]),
          })),
      }))
      .filter((l) => l.points.length);
    const xs = [...new Set(lines.flatMap((l) => l.points.map((p) => p.x)))].sort((a, b) => a - b);
    const ys = lines.flatMap((l) => l.points.flatMap((p) => [p.y, p.low ?? p.y, p.high ?? p.y]));
    const [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys, 0), Math.max(...ys)];
    const X = (x) => 64 + (520 * (x - x0)) / (x1 - x0 || 1);
    const Y = (y) => 290 - (276 * (y - y0)) / (y1 - y0 || 1);
    const chart = svg("svg", {
      viewBox: "0 0 620 330",
      class: "chart",
      tabindex: "0",
      role: "application",
      "aria-label": `${t.title}: ${lines.length} curves; the arrow keys read the values at a point of a line`,
    });
    const written = (x) => String(x).replace("-", "−");
    for (const y of ticks(y0, y1))
      chart.append(
        svg("line", {x1: 64, x2: 584, y1: Y(y), y2: Y(y), class: "grid"}),
        svg("text", {x: 58, y: Y(y) + 4, "text-anchor": "end"}, written(y)),
      );
    for (const x of ticks(x0, x1))
      chart.append(svg("text", {x: X(x), y: 309, "text-anchor": "middle"}, written(x)));
    const drawn = chart.appendChild(svg("g", {class: "lines"}));
    chart.append(svg("text", {x: 328, y: 326, "text-anchor": "middle"}, names[mean - 1]));
    for (const l of lines) {
      const band = l.points.filter((p) => p.low !== null && p.high !== null);
      const outline = band
        .map((p) => `${X(p.x)},${Y(p.high)}`)
        .concat(
          band
            .slice()
            .reverse()
            .map((p) => `${X(p.x)},${Y(p.low)}`),
        );
      l.band = svg("polygon", {points: outline.join(" "), fill: l.colour, class: "band"});
      l.path = svg("polyline", {
        points: l.points.map((p) => `${X(p.x)},${Y(p.y)}`).join(" "),
        stroke: l.colour,
        class: "curve",
        "stroke-dasharray": l.dashed && "5 3",
      });
      drawn.append(l.band, l.path);
    }
    const cursor = svg("line", {y1: 14, y2: 290, class: "cursor"});
    chart.append(cursor);
    const read = h("div", {class: "read"});
    const shown = items().length > 0;
    function at(i, y) {
      state.at = Math.min(Math.max(i, 0), xs.length - 1);
      const x = xs[state.at];
      cursor.setAttribute("x1", X(x));
      cursor.setAttribute("x2", X(x));
      const values = lines
        .map((l) => ({l, p: l.points.find((p) => p.x === x)}))
        .filter(({p}) => p)
        .sort((a, b) => b.p.y - a.p.y);
      if (y !== undefined)
        state.near = values.slice().sort((a, b) => Math.abs(Y(a.p.y) - y) - Math.abs(Y(b.p.y) - y))[0].l.id;
      const near = values.find(({l}) => l.id === state.near);
      for (const l of lines)
        for (const e of [l.band, l.path]) e.classList.toggle("near", Boolean(near) && near.l === l);
      if (near) {
        const points = near.l.points;
        const of = removals()[ids(state.line).indexOf(near.l.id)];
        figure.show(of, near.l.id, state.item, x, points.indexOf(near.p), points.length);
      }
      fill(
        read,
        h("p", {}, `${names[mean - 1]} ${brief(x, 3)}`),
        h(
          "ul",
          {class: "legend"},
          values.map(({l, p}) =>
            h(
              "li",
              {class: near && near.l === l ? "near" : ""},
              swatch(l),
              `${l.id} `,
              h(
                "span",
                {class: "value"},
                brief(p.y),
                p.low === null ? "" : ` (${brief(p.low)} to ${brief(p.high)})`,
              ),
            ),
          ),
        ),
      );
    }
    const swatch = (l) =>
      svg(
        "svg",
        {viewBox: "0 0 18 8", class: "swatch", "aria-hidden": "true"},
        svg("line", {
          x1: 0,
          x2: 18,
          y1: 4,
          y2: 4,
          stroke: l.colour,
          "stroke-width": 3,
          "stroke-dasharray": l.dashed && "5 3",
        }),
      );
    chart.addEventListener("pointermove", (event) => {
      const box = chart.getBoundingClientRect();
      const [x, y] = [
        ((event.clientX - box.left) * 620) / box.width,
        ((event.clientY - box.top) * 330) / box.height,
      ];
      at(
        xs.reduce((best, v, i) => (Math.abs(X(v) - x) < Math.abs(X(xs[best]) - x) ? i : best), 0),
        y,
      );
    });
    chart.addEventListener("keydown", (event) => {
      const by = {ArrowLeft: -1, ArrowRight: 1}[event.key] || 0;
      const along = {ArrowUp: -1, ArrowDown: 1}[event.key] || 0;
      if (!by && !along) return;
      event.preventDefault();
      step(along);
      at(state.at + by);
      say([read.textContent, figure.textContent].filter(Boolean).join("; "));
    });
    // The line that is above or below the chosen one at the point.
    function step(along) {
      const values = lines
        .map((l) => ({l, p: l.points.find((p) => p.x === xs[state.at])}))
        .filter(({p}) => p)
        .sort((a, b) => b.p.y - a.p.y);
      const now = values.findIndex(({l}) => l.id === state.near);
      const next = values[Math.min(Math.max(now + along, 0), values.length - 1)];
      if (along && next) state.near = next.l.id;
    }
    fill(place, h("div", {class: shown ? "curves with-image" : "curves"}, chart, read, shown && figure));
    at(state.at < 0 ? Math.floor(xs.length / 4) : state.at);
  }
  draw();
  const nameOf = (k) => (k < 0 ? "" : names[k]);
  remember(
    "curves " + t.file,
    () => ({
      lines: nameOf(state.line),
      at: state.at,
      near: state.near,
      item: state.item,
      fixed: keys.filter((k) => k !== state.line).map((k) => [names[k], state.fixed[k]]),
    }),
    (f) => {
      const line = keys.find((k) => names[k] === f.lines);
      if (line !== undefined) state.line = line;
      for (const [name, id] of f.fixed || []) {
        const k = keys.find((i) => names[i] === name);
        if (k !== undefined && ids(k).includes(id)) state.fixed[k] = id;
      }
      if (Number.isInteger(f.at)) state.at = f.at;
      if (ids(state.line).includes(f.near)) state.near = f.near;
      if (items().includes(f.item)) state.item = f.item;
      draw();
    },
  );
  return h("div", {}, h("h3", {}, t.title, " ", h("span", {class: "id"}, t.stage)), controls, place);
}
