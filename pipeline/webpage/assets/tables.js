// The published tables, sorted by any column, and the figures.

const openRows = 15;
const shownRows = 200;

function publishedTable(t) {
  const marks = new Map(t.columns.map((c, i) => [c.drawn && c.marks, i]).filter(([of]) => of));
  const columns = t.columns.map((c, i) => ({...c, i})).filter((c) => !c.marks);
  // Columns of whole numbers, if the ends of an interval and what lies between them are whole alike.
  const base = (c) => c.name.replace(/ ?(mean|low|high)$/, "");
  const isWhole = (c) => t.rows.every((row) => /^-?\d*$/.test(row[c.i]));
  const broken = new Set(columns.filter((c) => c.number && !isWhole(c)).map(base));
  const whole = new Set(columns.filter((c) => isWhole(c) && !broken.has(base(c))).map((c) => c.i));
  const forms = new Map(
    columns
      .filter((c) => c.number && !whole.has(c.i))
      .map((c) => [c.i, aligned(t.rows.filter((r) => r[c.i] !== "").map((r) => Number(r[c.i])))]),
  );
  const state = {sort: -1, sense: 1, most: shownRows};
  const place = h("div", {});
  function draw() {
    let rows = t.rows;
    if (state.sort >= 0) {
      const c = t.columns[state.sort];
      const value = (r) => (r[state.sort] === "" ? null : Number(r[state.sort]));
      rows = rows.slice().sort((a, b) => {
        if (!c.number) return state.sense * a[state.sort].localeCompare(b[state.sort]);
        const [x, y] = [value(a), value(b)];
        return (x === null) - (y === null) || state.sense * (c.direction === "higher" ? y - x : x - y);
      });
    }
    const head = (c) => {
      const sorted = state.sort === c.i;
      const falling = (c.direction === "higher") === state.sense > 0;
      return h(
        "th",
        {
          scope: "col",
          class: c.number ? "number" : "",
          "aria-sort": sorted ? (falling ? "descending" : "ascending") : "none",
        },
        h(
          "button",
          {
            type: "button",
            class: "sort",
            "data-key": "sort " + c.name,
            onclick: () => {
              state.sense = sorted ? -state.sense : 1;
              state.sort = c.i;
              draw();
              say(`${t.title}: sorted by ${c.name}`);
            },
          },
          c.name,
          arrows[c.direction] || "",
          h(
            "span",
            {class: "sorted", "aria-hidden": "true"},
            sorted ? (state.sense > 0 ? " ▾" : " ▴") : "",
          ),
        ),
      );
    };
    const field = (r, c) => {
      if (!c.number) return h("td", {class: r[c.i].length > 32 ? "" : "key"}, r[c.i]);
      const x = r[c.i] === "" ? null : Number(r[c.i]);
      const marked = marks.has(c.name) && r[marks.get(c.name)] === "1";
      return h(
        "td",
        {class: "number"},
        whole.has(c.i) && x !== null ? String(x).replace("-", "−") : (forms.get(c.i) || brief)(x),
        marks.has(c.name) ? h("span", {class: "star"}, marked ? "*" : "") : "",
      );
    };
    const shown = rows.slice(0, state.most);
    const more = showAll(rows.length, state.most, "rows", () => {
      state.most = Infinity;
      draw();
    });
    const left =
      t.len > t.rows.length &&
      h("p", {class: "note"}, `${t.len - t.rows.length} further rows are in ${t.file} only.`);
    fill(
      place,
      scrolling(
        t.title,
        h(
          "table",
          {},
          h("caption", {class: "unseen"}, `${t.title} (${t.len} ${t.len === 1 ? "row" : "rows"})`),
          h("thead", {}, h("tr", {}, columns.map(head))),
          h(
            "tbody",
            {},
            shown.map((r) =>
              h(
                "tr",
                {},
                columns.map((c) => field(r, c)),
              ),
            ),
          ),
        ),
      ),
      t.legend ? h("p", {class: "note"}, `* ${t.legend}`) : "",
      t.bare ? h("p", {class: "note"}, t.bare) : "",
      more,
      left,
    );
  }
  draw();
  return {
    place,
    get: () => ({sort: state.sort < 0 ? "" : t.columns[state.sort].name, falling: state.sense < 0}),
    set: (f) => {
      if (f.sort !== undefined) state.sort = t.columns.findIndex((c) => c.name === f.sort);
      if (f.falling !== undefined) state.sense = f.falling ? -1 : 1;
      draw();
    },
  };
}

function tables() {
  const list = model.tables.filter((t) => !curveTables().includes(t));
  if (!list.length) return null;
  const seen = new Set();
  return section(
    "tables",
    "Tables",
    list.map((t) => {
      const first = !seen.has(t.stage);
      seen.add(t.stage);
      const place = h("div", {});
      let shown = null;
      const unfold = () => {
        if (shown) return;
        shown = publishedTable(t);
        place.append(shown.place);
      };
      const details = h(
        "details",
        {
          ontoggle: () => {
            if (details.open) unfold();
          },
        },
        h("summary", {}, `${t.title} (${t.len} ${t.len === 1 ? "row" : "rows"})`),
        place,
      );
      if (first && t.len <= openRows) {
        details.open = true;
        unfold();
      }
      remember(
        "table " + t.file,
        () => ({open: details.open, ...(shown ? shown.get() : {sort: "", falling: false})}),
        (f) => {
          if (f.open !== undefined) details.open = f.open;
          if (!details.open) return;
          unfold();
          shown.set(f);
        },
      );
      return details;
    }),
  );
}

// The stage of a figure and the ids of its cell, as the file is named after them.
const placeInFile = (f) => {
  const name = f.file.replace(/^figures\//, "").replace(/\.[a-z]+$/, "");
  const ids = name.startsWith(f.stage + ".") ? ", " + name.slice(f.stage.length + 1) : "";
  return f.stage + ids;
};

function figures() {
  if (!model.figures.length) return null;
  return section(
    "figures",
    "Figures",
    model.figures.map((f) =>
      h(
        "figure",
        {class: "wide"},
        sideways(f.file, h("img", {src: f.src, alt: f.caption || f.file})),
        h("figcaption", {}, h("strong", {}, placeInFile(f)), f.caption, " ", h("span", {class: "id"}, f.file)),
      ),
    ),
  );
}
