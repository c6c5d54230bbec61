// The leaderboard: a row an id of the axis that competes, a column a case, or, folded, a score over its cases.

const board = {
  axis: model.rank,
  filters: {},
  scores: new Set(),
  open: new Set(),
  sort: ["overall", 1],
  best: [], // ids of the axis, at first
};

const directed = (s) => s.direction === "higher" || s.direction === "lower";
const competing = () => model.scores.filter((s) => s.axes.includes(board.axis) && directed(s));

// The cases of a score: cells that differ on the competing axis alone.
function casesOf(score) {
  const at = score.axes.indexOf(board.axis);
  const cases = new Map();
  for (const c of score.cells) {
    if (score.axes.some((axis, i) => i !== at && board.filters[axis] && board.filters[axis] !== c.ids[i]))
      continue;
    const name = placeOf(score.axes, c.ids, board.axis);
    if (!cases.has(name)) cases.set(name, {name, score, cells: new Map()});
    cases.get(name).cells.set(c.ids[at], c);
  }
  for (const one of cases.values()) rank(one);
  return [...cases.values()];
}

// Ranks the cells of a case; equal means share the mean of their ranks, undefined ones come last.
function rank(one) {
  const sign = one.score.direction === "lower" ? 1 : -1;
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
}

function meanRank(cases, id) {
  const ranks = cases.map((c) => c.ranks.get(id)).filter((r) => r !== undefined);
  return ranks.length ? ranks.reduce((a, b) => a + b) / ranks.length : null;
}

// A mean with its interval, on the scale of its column.
function interval(c, least, most) {
  const width = most - least || 1;
  const x = (v) => (2 + (76 * (v - least)) / width).toFixed(1);
  const drawn = svg(
    "svg",
    {viewBox: "0 0 80 8", class: "interval", "aria-hidden": "true"},
    svg("line", {x1: 0, x2: 80, y1: 4, y2: 4, class: "rail"}),
  );
  if (c.low !== null) drawn.append(svg("line", {x1: x(c.low), x2: x(c.high), y1: 4, y2: 4, class: "span"}));
  if (c.mean !== null) drawn.append(svg("circle", {cx: x(c.mean), cy: 4, r: 2.4}));
  return drawn;
}

function scoreCell(one, id) {
  const c = one.cells.get(id);
  if (!c) return h("td", {}, "");
  const first = one.ranks.get(id) === Math.min(...one.ranks.values());
  const span = c.low === null ? "" : `, interval ${brief(c.low)} to ${brief(c.high)}`;
  const alike = c.alike ? ", can't be told apart from the best" : "";
  const undefinedItems = c.undefined ? `, ${c.undefined} of ${c.n} undefined` : "";
  const label = `${id}, ${one.score.name} ${one.name}: ${brief(c.mean)}${span}${alike}${undefinedItems}; show its images`;
  return h(
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
      brief(c.mean),
      c.alike ? " ≈" : "",
      c.undefined ? " †" : "",
    ),
    interval(c, one.least, one.most),
  );
}

function drawBoard() {
  const scores = competing().filter((s) => board.scores.has(s.name));
  const groups = scores.map((s) => [s, casesOf(s)]).filter(([, cases]) => cases.length);
  const all = groups.flatMap(([, cases]) => cases);
  const columns = [
    {
      key: "overall",
      name: "mean rank",
      direction: "lower",
      value: (id) => meanRank(all, id),
      cell: (id) => h("td", {class: "number"}, brief(meanRank(all, id), 3)),
    },
  ];
  const heads = [];
  for (const [s, cases] of groups) {
    const open = board.open.has(s.name);
    heads.push([s, cases, open]);
    if (!open) {
      columns.push({
        key: s.name,
        name: cases.length > 1 ? `mean rank in ${cases.length} cases` : "rank",
        direction: "lower",
        value: (id) => meanRank(cases, id),
        cell: (id) => h("td", {class: "number"}, brief(meanRank(cases, id), 3)),
      });
      continue;
    }
    for (const one of cases) {
      const value = (id) => (one.cells.has(id) ? one.cells.get(id).mean : null);
      columns.push({
        key: s.name + "\n" + one.name,
        name: one.name || "mean",
        direction: s.direction,
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
          "aria-expanded": String(open),
          onclick: () => {
            if (open) board.open.delete(s.name);
            else board.open.add(s.name);
            drawBoard();
          },
        },
        (open ? "− " : "+ ") + s.name,
      ),
    );
  const table = h(
    "table",
    {id: "board", class: "board"},
    h("caption", {}, `${board.axis} by score; ${all.length} cases`),
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
        h(
          "th",
          {rowspan: 2, scope: "col", "aria-sort": head(columns[0]).getAttribute("aria-sort")},
          head(columns[0]).firstChild,
        ),
        heads.map(groupHead),
      ),
      h("tr", {}, columns.slice(1).map(head)),
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
  const focused = document.activeElement && document.activeElement.textContent;
  fill(boardPlace, scrolling("leaderboard", table));
  if (focused) {
    const again = [...table.querySelectorAll("button")].find(
      (b) => b.textContent.slice(1, 12) === focused.slice(1, 12),
    );
    if (again) again.focus({preventScroll: true});
  }
}

const boardPlace = h("div", {});
const itemsPlace = h("div", {id: "items", tabindex: "-1"});

// The images of one number, from the best to the worst.
function showItems(score, c, most = 48) {
  const sign = score.direction === "lower" ? 1 : -1;
  const where = placeOf(score.axes, c.ids) || c.cell;
  const title = h(
    "h3",
    {tabindex: "-1"},
    `${score.name}, ${where}: its images, ${directed(score) ? "best to worst" : "largest first"}`,
  );
  if (c.items < 0) {
    fill(
      itemsPlace,
      title,
      h("p", {}, "The folder has no room for the scores of the images: they are in the store."),
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
    const e = h(
      "li",
      {},
      h("span", {class: "place"}, String(place + 1) + ". "),
      h("span", {class: "id"}, ids[i]),
      " ",
      h("strong", {}, c.values[i] === null ? "undefined" : brief(c.values[i])),
    );
    const found = mapFor(score, c, ids[i]);
    if (found) {
      const open = h("button", {
        type: "button",
        class: "tile",
        "aria-label": `maps of ${ids[i]}`,
        onclick: () => show.image(found, ids[i]),
      });
      e.prepend(open);
      whenSeen(open, () => drawPair(open, found, ids[i]));
    }
    return e;
  });
  const more =
    order.length > most &&
    h(
      "p",
      {},
      h(
        "button",
        {type: "button", onclick: () => showItems(score, c, order.length)},
        `show all ${order.length}`,
      ),
    );
  fill(itemsPlace, title, h("ol", {class: "gallery"}, cells), more || "");
  title.focus();
}

// The maps that a score is of: of the stage with the most axes that agree.
function mapFor(score, c, item) {
  for (const stage of model.maps) {
    if (!stage.axes.every((axis) => axis === "version" || score.axes.includes(axis))) continue;
    const cell = stage.cells.find((m) => agree(stage.axes, m.ids, score.axes, c.ids) && isNow(stage, m));
    if (cell && positionOf(cell.items, item) >= 0) return {stage, cell};
  }
  return null;
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
  const folds = h(
    "button",
    {
      type: "button",
      onclick: () => {
        if (board.open.size) board.open.clear();
        else for (const s of board.scores) board.open.add(s);
        folds.textContent = board.open.size ? "fold cases" : "unfold cases";
        drawBoard();
      },
    },
    "unfold cases",
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
      return h("span", {class: "check"}, box, h("label", {for: id}, s.name + arrows[s.direction]));
    }),
  );
  drawBoard();
  return section(
    "leaderboard",
    "Leaderboard",
    h("div", {class: "controls"}, axes.map(filter), folds, checks),
    boardPlace,
    h(
      "p",
      {class: "note"},
      `Lines are the ${model.interval}. ≈ can't be told apart from the best of its case: that interval of ` +
        "the paired differences contains 0, uncorrected. † some items are undefined, and in no mean. Bold is the best of " +
        "its case. A number opens its images, best to worst.",
    ),
    itemsPlace,
  );
}
