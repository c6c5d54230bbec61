// The leaderboard: a row an id of the axis that competes, a column a case, or, folded, a score over its cases.

const board = {
  axis: model.rank,
  filters: {},
  scores: new Set(),
  open: new Set(),
  sort: ["overall", 1],
  heat: false, // whether cells are coloured by their place between the worst and the best
  best: [], // ids of the axis, at first
  boxes: new Map(), // of the scores, by name
  controls: [], // of the filters, by axis
  folds: null,
  heats: null,
  opened: {score: "", cell: "", id: ""}, // what is shown below: the images of a cell, or the cases of an id
};

// Which way is better may be another one in other cells: areas under curves of morf and lerf.
const directed = (c) => c.direction === "higher" || c.direction === "lower";
const arrowOf = (score) => {
  const all = new Set(score.cells.map((c) => arrows[c.direction] || ""));
  return all.size === 1 ? [...all][0] : "";
};
const competing = () =>
  model.scores.filter((s) => s.axes.includes(board.axis) && s.cells.some(directed));

// The cases of a score: cells that differ on the competing axis alone.
function casesOf(score) {
  const at = score.axes.indexOf(board.axis);
  const cases = new Map();
  for (const c of score.cells.filter(directed)) {
    if (score.axes.some((axis, i) => i !== at && board.filters[axis] && board.filters[axis] !== c.ids[i]))
      continue;
    const name = placeOf(score.axes, c.ids, board.axis);
    if (!cases.has(name)) cases.set(name, {name, score, direction: c.direction, cells: new Map()});
    cases.get(name).cells.set(c.ids[at], c);
  }
  for (const one of cases.values()) rank(one);
  return [...cases.values()];
}

// Ranks the cells of a case; equal means share the mean of their ranks, undefined ones come last.
function rank(one) {
  const sign = one.direction === "lower" ? 1 : -1;
  const list = [...one.cells.entries()].map(([id, c]) => [id, c.mean === null ? Infinity : sign * c.mean]);
  one.ranks = new Map();
  for (const [id, x] of list) {
    const before = list.filter(([, y]) => y < x).length;
    const equal = list.filter(([, y]) => y === x).length;
    one.ranks.set(id, before + (equal + 1) / 2);
  }
  const ends = [...one.cells.values()].flatMap((c) => [c.mean, c.low, c.high]).filter((x) => x !== null);
  one.least = Math.min(...ends);
  one.most = Math.max(...ends);
  const means = [...one.cells.values()].map((c) => c.mean).filter((x) => x !== null);
  one.text = aligned(means);
  one.means = [Math.min(...means), Math.max(...means)];
}

// Colours a cell by how good its number is, from 0 for the worst to 1 for the best.
function heated(cell, x, worst, best) {
  if (board.heat && x !== null && worst !== best) {
    cell.classList.add("heat");
    cell.style.setProperty("--heat-share", (100 * (x - worst)) / (best - worst) + "%");
  }
  return cell;
}

const ranksOf = (cases, id) => cases.map((c) => c.ranks.get(id)).filter((r) => r !== undefined);

function meanRank(cases, id) {
  const ranks = ranksOf(cases, id);
  return ranks.length ? ranks.reduce((a, b) => a + b) / ranks.length : null;
}

// A scale 80 wide, with marks on it.
const rail = (...marks) =>
  svg(
    "svg",
    {viewBox: "0 0 80 8", class: "interval", "aria-hidden": "true"},
    svg("line", {x1: 0, x2: 80, y1: 4, y2: 4, class: "rail"}),
    ...marks,
  );

// A mean with its interval, on the scale of its column.
function interval(c, least, most) {
  const width = most - least || 1;
  const x = (v) => (2 + (76 * (v - least)) / width).toFixed(1);
  return rail(
    c.low !== null && svg("line", {x1: x(c.low), x2: x(c.high), y1: 4, y2: 4, class: "span"}),
    c.mean !== null && svg("circle", {cx: x(c.mean), cy: 4, r: 2.4}),
  );
}

// The ranks of an id in some cases, from the first to the last, and their mean.
function rankStrip(cases, id) {
  const last = Math.max(...cases.map((c) => c.cells.size));
  const x = (r) => (2 + (76 * (r - 1)) / (last - 1 || 1)).toFixed(1);
  return rail(
    ranksOf(cases, id).map((r) => svg("line", {x1: x(r), x2: x(r), y1: 1, y2: 7, class: "tick"})),
    svg("circle", {cx: x(meanRank(cases, id)), cy: 4, r: 2.4}),
  );
}

// A mean rank. A click unfolds its cases.
function rankCell(cases, id, of) {
  const mean = meanRank(cases, id);
  if (mean === null) return h("td", {}, "");
  const ranks = ranksOf(cases, id);
  const label =
    `${id}, ${of}: mean rank ${mean.toFixed(2)} in ${casesText(ranks.length)}, ` +
    `${brief(Math.min(...ranks), 3)} to ${brief(Math.max(...ranks), 3)}; show them`;
  const cell = h(
    "td",
    {class: "number"},
    h(
      "button",
      {
        type: "button",
        class: "value",
        "aria-label": label,
        title: label,
        onclick: () => showCases(cases, id, of),
      },
      mean.toFixed(2),
    ),
    rankStrip(cases, id),
  );
  return heated(cell, mean, Math.max(...cases.map((c) => c.cells.size)), 1);
}

function scoreCell(one, id) {
  const c = one.cells.get(id);
  if (!c) return h("td", {}, "");
  const first = one.ranks.get(id) === Math.min(...one.ranks.values());
  const span = c.low === null ? "" : `, interval ${brief(c.low)} to ${brief(c.high)}`;
  const undefinedItems = c.undefined ? `, ${c.undefined} of ${c.n} undefined` : "";
  const label = `${id}, ${one.score.name} ${one.name}: ${one.text(c.mean)}${span}${undefinedItems}; show its ${model.itemNoun}`;
  const [worst, best] = one.direction === "lower" ? one.means.toReversed() : one.means;
  const cell = h(
    "td",
    {class: "number"},
    h(
      "button",
      {
        type: "button",
        class: "value" + (first ? " best" : ""),
        "aria-label": label,
        title: label,
        onclick: () => showItems(one.score, c),
      },
      one.text(c.mean),
      c.undefined ? h("span", {class: "mark"}, "†") : "",
    ),
    interval(c, one.least, one.most),
  );
  return heated(cell, c.mean, worst, best);
}

function drawBoard() {
  const scores = competing().filter((s) => board.scores.has(s.name));
  const groups = scores.map((s) => [s, casesOf(s)]).filter(([, cases]) => cases.length);
  const all = groups.flatMap(([, cases]) => cases);
  const columns = [];
  if (groups.length !== 1 || board.open.has(groups[0][0].name)) // else the one score's mean ranks are all
    columns.push({
      key: "overall",
      name: "mean rank",
      direction: "lower",
      value: (id) => meanRank(all, id),
      cell: (id) => rankCell(all, id, "all scores"),
    });
  const overall = columns.length;
  const heads = [];
  for (const [s, cases] of groups) {
    const open = board.open.has(s.name);
    heads.push([s, cases, open]);
    if (!open) {
      columns.push({
        key: overall ? s.name : "overall",
        name: cases.length > 1 ? "mean rank" : "rank",
        direction: "lower",
        value: (id) => meanRank(cases, id),
        cell: (id) => rankCell(cases, id, s.name),
      });
      continue;
    }
    for (const one of cases) {
      const value = (id) => (one.cells.has(id) ? one.cells.get(id).mean : null);
      columns.push({
        key: s.name + "\n" + one.name,
        name: one.name || "mean",
        direction: one.direction,
        value,
        cell: (id) => scoreCell(one, id),
      });
    }
  }
  const [key, sense] = board.sort;
  const sorted = columns.find((c) => c.key === key);
  const found = new Set(all.flatMap((c) => [...c.cells.keys()]));
  let rows = idsOf(board.axis).filter(
    (id) => found.has(id) && (!board.filters[board.axis] || board.filters[board.axis] === id),
  );
  if (sorted) {
    const sign = (sorted.direction === "lower" ? 1 : -1) * sense;
    const value = (id) => {
      const x = sorted.value(id);
      return x === null ? Infinity : sign * x;
    };
    rows = rows.slice().sort((a, b) => value(a) - value(b));
  } else if (key === "name") {
    rows = rows.slice().sort((a, b) => sense * a.localeCompare(b));
  }
  if (!board.best.length) board.best = rows;
  const head = (c) =>
    h(
      "th",
      {
        scope: "col",
        "aria-sort":
          key !== c.key ? "none" : (c.direction === "lower") === sense > 0 ? "ascending" : "descending",
      },
      h(
        "button",
        {
          type: "button",
          class: "sort",
          "data-key": "sort " + c.key,
          title: better[c.direction] ? "sort; " + better[c.direction] : "sort",
          onclick: () => {
            board.sort = [c.key, key === c.key ? -sense : 1];
            drawBoard();
            say(`sorted by ${c.name}`);
          },
        },
        c.name,
        arrows[c.direction] || "",
        h("span", {class: "sorted", "aria-hidden": "true"}, key === c.key ? (sense > 0 ? " ▾" : " ▴") : ""),
      ),
    );
  const groupHead = ([s, cases, open]) =>
    h(
      "th",
      {scope: "colgroup", colspan: open ? cases.length : 1},
      h(
        "button",
        {
          type: "button",
          class: "fold",
          "data-key": "fold " + s.name,
          "aria-expanded": String(open),
          onclick: () => {
            if (open) board.open.delete(s.name);
            else board.open.add(s.name);
            drawBoard();
          },
        },
        `${open ? "−" : "+"} ${s.name}${open || cases.length < 2 ? "" : `, ${cases.length} cases`}`,
      ),
    );
  const table = h(
    "table",
    {id: "board", class: "board"},
    h("caption", {}, `${board.axis} by score; ${casesText(all.length)}`),
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        h(
          "th",
          {rowspan: 2, scope: "col", class: "name"},
          head({key: "name", name: board.axis}).firstChild,
        ),
        columns.slice(0, overall).map((c) => {
          const cell = head(c);
          cell.rowSpan = 2;
          return cell;
        }),
        heads.map(groupHead),
      ),
      h("tr", {}, columns.slice(overall).map(head)),
    ),
    h(
      "tbody",
      {},
      rows.map((id) =>
        h(
          "tr",
          {},
          h("th", {scope: "row"}, id),
          columns.map((c) => c.cell(id)),
        ),
      ),
    ),
  );
  fill(boardPlace, scrolling("leaderboard", table));
  board.heats.setAttribute("aria-pressed", String(board.heat));
  board.folds.textContent = board.open.size ? "fold cases" : "unfold cases";
  for (const [axis, control] of board.controls) control.hidden = !scores.some((s) => s.axes.includes(axis));
}

const boardPlace = h("div", {});
const itemsPlace = h("div", {id: "items", tabindex: "-1"});

// The cases of a mean rank, from the best to the worst. Each number in them shows its images in their place.
function showCases(cases, id, of) {
  board.opened = {score: of, cell: "", id};
  const list = cases.filter((c) => c.cells.has(id)).sort((a, b) => a.ranks.get(id) - b.ranks.get(id));
  const title = h("h3", {tabindex: "-1"}, `${id}, ${of}: its cases, best to worst`);
  const table = h(
    "table",
    {class: "board"},
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ["case", "rank", "mean"].map((t) => h("th", {scope: "col", class: t === "case" ? "name" : ""}, t)),
      ),
    ),
    h(
      "tbody",
      {},
      list.map((one) =>
        h(
          "tr",
          {},
          h("th", {scope: "row"}, `${one.score.name} ${one.name}${arrows[one.direction]}`),
          h("td", {class: "number"}, `${brief(one.ranks.get(id), 3)} of ${one.cells.size}`),
          scoreCell(one, id),
        ),
      ),
    ),
  );
  fill(itemsPlace, title, scrolling(title.textContent, table));
  title.focus();
}

// The images of one number, from the best to the worst.
function showItems(score, c, most = 48) {
  board.opened = {score: score.name, cell: c.cell, id: ""};
  const sign = c.direction === "lower" ? 1 : -1;
  const where = placeOf(score.axes, c.ids) || c.cell;
  const title = h(
    "h3",
    {tabindex: "-1"},
    `${score.name}, ${where}: its ${model.itemNoun}, ${directed(c) ? "best to worst" : "largest first"}`,
  );
  if (c.items < 0) {
    fill(
      itemsPlace,
      title,
      h("p", {}, `The folder has no room for the scores of the ${model.itemNoun}: they are in the store.`),
    );
    title.focus();
    return;
  }
  const ids = model.items[c.items];
  const order = ids
    .map((_, i) => i)
    .sort((a, b) => {
      const x = c.values[a],
        y = c.values[b];
      return (x === null) - (y === null) || sign * (x - y) || a - b;
    });
  const cells = order.slice(0, most).map((i, place) => {
    const read = show.text && show.text(score, c, ids[i]);
    const e = h(
      "li",
      {},
      h("span", {class: "place"}, String(place + 1) + ". "),
      read
        ? h("button", {type: "button", class: "id", "aria-label": `text ${ids[i]}`, onclick: read}, ids[i])
        : h("span", {class: "id"}, ids[i]),
      " ",
      h("strong", {}, c.values[i] === null ? "undefined" : brief(c.values[i])),
    );
    const found = mapFor(score, c, ids[i]);
    if (found) {
      const open = h("button", {
        type: "button",
        class: "tile",
        "aria-label": `maps of ${ids[i]}`,
        onclick: () => show.image(found, ids[i], score.name),
      });
      e.prepend(open);
      whenSeen(open, () => drawPair(open, found, ids[i]));
    }
    return e;
  });
  const more = showAll(order.length, most, model.itemNoun, () => showItems(score, c, order.length));
  fill(itemsPlace, title, h("ol", {class: "gallery"}, cells), more);
  title.focus();
}

// The map that a score rates: the first one whose axes the score has.
function mapFor(score, c, item) {
  for (const stage of model.maps) {
    if (!stage.axes.every((axis) => axis === "version" || score.axes.includes(axis))) continue;
    const cell = stage.cells.find((m) => agree(stage.axes, m.ids, score.axes, c.ids) && isNow(stage, m));
    if (cell && positionOf(cell.items, item) >= 0) return {stage, cell};
  }
  return null;
}

const boardFields = () => ({
  scores: [...board.scores].sort(),
  open: [...board.open].sort(),
  sort: board.sort,
  heat: board.heat,
  filters: Object.entries(board.filters).filter(([, id]) => id),
  ...board.opened,
});

// Shows a leaderboard of an address.
function setBoard(f) {
  const names = competing().map((s) => s.name);
  const known = (list) => list.filter((name) => names.includes(name));
  if (f.scores) board.scores = new Set(known(f.scores));
  if (f.open) board.open = new Set(known(f.open));
  if (f.sort && f.sort.length === 2) board.sort = [String(f.sort[0]), f.sort[1] < 0 ? -1 : 1];
  if (f.heat !== undefined) board.heat = f.heat;
  for (const [axis, id] of f.filters || [])
    if (idsOf(axis).includes(id)) board.filters[axis] = id;
  for (const [axis, control] of board.controls)
    control.querySelector("select").value = board.filters[axis] || "";
  for (const [name, box] of board.boxes) box.checked = board.scores.has(name);
  drawBoard();
  if (f.id) {
    const scores = competing().filter((s) => board.scores.has(s.name));
    const of = scores.find((s) => s.name === f.score);
    const cases = (of ? [of] : scores).flatMap(casesOf).filter((c) => c.cells.has(f.id));
    if (cases.length) showCases(cases, f.id, of ? of.name : "all scores");
  } else if (f.cell) {
    const score = model.scores.find((s) => s.name === f.score);
    const c = score && score.cells.find((x) => x.cell === f.cell);
    if (c) showItems(score, c);
  }
}

// Which scores read no signs.
function readsText() {
  const of = (word) => competing().filter((s) => s.reads === word).map((s) => s.name);
  const sentence = (word, text) => (of(word).length ? ` ${of(word).join(", ")} ${of(word).length > 1 ? "read" : "reads"} ${text}.` : "");
  return (
    sentence("magnitude", "magnitudes: for and against the class counts alike") +
    sentence("positive", "positive values alone") +
    sentence("signed", "signed values")
  );
}

function leaderboard() {
  const list = competing();
  if (!list.length) return null;
  const usual = list.filter((s) => model.ranked.includes(s.name));
  for (const s of usual.length ? usual : list) board.scores.add(s.name);
  const axes = [...new Set(list.flatMap((s) => s.axes))];
  const filter = (axis) =>
    choice(axis, [["", "all"], ...idsOf(axis).map((id) => [id, id])], "", (v) => {
      board.filters[axis] = v;
      drawBoard();
    });
  board.controls = axes.map((axis) => [axis, filter(axis)]);
  board.folds = h(
    "button",
    {
      type: "button",
      onclick: () => {
        if (board.open.size) board.open.clear();
        else for (const s of board.scores) board.open.add(s);
        drawBoard();
      },
    },
    "",
  );
  board.heats = h(
    "button",
    {
      type: "button",
      "aria-pressed": "false",
      onclick: () => {
        board.heat = !board.heat;
        drawBoard();
      },
    },
    "colours",
  );
  const checks = h(
    "fieldset",
    {class: "checks"},
    h("legend", {}, "scores"),
    list.map((s) => {
      const id = newID();
      const box = h("input", {
        type: "checkbox",
        id,
        checked: board.scores.has(s.name),
        onchange: () => {
          if (box.checked) board.scores.add(s.name);
          else board.scores.delete(s.name);
          drawBoard();
        },
      });
      board.boxes.set(s.name, box);
      return h("span", {class: "check"}, box, h("label", {for: id}, s.name + arrowOf(s)));
    }),
  );
  if (list.flatMap((s) => (board.scores.has(s.name) ? casesOf(s) : [])).length <= 40)
    for (const s of board.scores) board.open.add(s);
  drawBoard();
  remember("board", boardFields, setBoard);
  return section(
    "leaderboard",
    "Leaderboard",
    h(
      "div",
      {class: "controls"},
      board.controls.map(([, control]) => control),
      board.folds,
      board.heats,
      checks,
    ),
    boardPlace,
    h(
      "p",
      {class: "note"},
      "Equal means share a rank. Below a mean rank stand the ranks in each case, the first on the left; the number " +
        `opens them. Below the mean of a case stands its ${model.interval}; the number opens its ` +
        `${model.itemNoun}, best to worst. Bold is the best of its case; the asterisks of the tables below say who ` +
        "doesn't differ significantly from the best. Colours, if chosen, go from the worst mean of a case, which has none, to the best." +
        (model.scores.some((s) => s.cells.some((c) => c.undefined))
          ? ` † some ${model.itemNoun} are undefined, and in no mean.`
          : ""),
      h("span", {id: "reads"}, readsText()),
    ),
    itemsPlace,
  );
}
