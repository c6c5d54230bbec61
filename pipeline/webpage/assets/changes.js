// What changed since another version of the folder.

function changes() {
  const c = model.changes;
  if (!c) return null;
  const parts = [h("p", {}, "Compared with ", h("strong", {}, c.before), ".")];
  parts.push(h("p", {}, h("strong", {}, c.summary)));
  const [was, is] = c.answers;
  if (was !== is) {
    parts.push(
      h(
        "dl",
        {},
        h("dt", {}, "answer before"),
        h("dd", {}, was || "none"),
        h("dt", {}, "answer now"),
        h("dd", {}, is || "none"),
      ),
    );
  } else if (is) {
    parts.push(h("p", {}, "The answer is the same."));
  }
  const cells = (title, list) =>
    list &&
    list.length &&
    h(
      "details",
      {},
      h("summary", {}, `${title}: ${list.length} ${list.length === 1 ? "cell" : "cells"}`),
      h(
        "ul",
        {class: "cells"},
        list.slice(0, 500).map((name) => h("li", {}, name)),
        list.length > 500 && h("li", {}, `and ${list.length - 500} more`),
      ),
    );
  parts.push(cells("only now", c.added), cells("only before", c.removed));
  const redefined = Object.entries(c.redefined || {});
  if (redefined.length) {
    parts.push(
      h(
        "p",
        {},
        "Other definitions: ",
        redefined.map(([stage, n]) => `${stage} (${n} ${n === 1 ? "cell" : "cells"})`).join(", "),
        ".",
      ),
    );
  }
  if (c.params && c.params.length) {
    parts.push(
      h("h3", {}, "Parameters"),
      simple("parameters", ["parameter", "before", "now", "where"], c.params),
    );
  }
  if (c.scores && c.scores.length) {
    parts.push(h("h3", {}, "Scores"), scoreChanges(c.scores));
  }
  const same = c.compared - (c.scores || []).length;
  if (same) parts.push(h("p", {}, `${same} ${same === 1 ? "score is" : "scores are"} the same.`));
  if (c.ranks && c.ranks.length) {
    parts.push(h("h3", {}, "Ranks"), simple("ranks", ["table", "row", "before", "now"], c.ranks));
  }
  if (c.figures && c.figures.length) {
    parts.push(
      h("h3", {}, "Figures"),
      c.figures.map((f) => {
        const v = viewer(`how to compare ${f.file}`);
        v.classList.add("wide"); // sheets have text in them
        const picture = (src, alt) => h("img", {src, alt, decoding: "async"});
        v.set(
          ["before", picture(f.before, `${f.file} before`), ""],
          ["now", picture(f.src, `${f.file} now`), ""],
        );
        return h("details", {}, h("summary", {}, f.file), v);
      }),
    );
  }
  const maps = model.maps.flatMap((s) => {
    const at = s.axes.indexOf("version");
    return at < 0 ? [] : s.cells.filter((m) => m.ids[at] === "before").map((m) => [s, m, at]);
  });
  if (maps.length) {
    parts.push(
      h("h3", {}, "Maps"),
      h(
        "ul",
        {class: "cells"},
        maps.map(([s, m, at]) =>
          h(
            "li",
            {},
            h(
              "button",
              {
                type: "button",
                onclick: () => {
                  show.image(
                    {
                      stage: s,
                      cell:
                        s.cells.find((x) =>
                          x.ids.every((id, i) => (i === at ? id === "now" : id === m.ids[i])),
                        ) || m,
                    },
                    model.items[m.items][0],
                  );
                  compared.a = m;
                  compared.b =
                    s.cells.find((x) =>
                      x.ids.every((id, i) => (i === at ? id === "now" : id === m.ids[i])),
                    ) || m;
                  drawCompare();
                  comparePlace.scrollIntoView();
                },
              },
              `${m.cell}: before and now`,
            ),
          ),
        ),
      ),
    );
  } else {
    parts.push(
      h("p", {class: "note"}, c.missing || "No map changed of which the store has both versions."),
    );
  }
  return section("changes", "Changes", ...parts.filter(Boolean));
}

const simple = (label, head, rows) =>
  scrolling(
    label,
    h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          head.map((t) => h("th", {scope: "col"}, t)),
        ),
      ),
      h(
        "tbody",
        {},
        rows.slice(0, 500).map((r) =>
          h(
            "tr",
            {},
            r.map((t) => h("td", {}, t)),
          ),
        ),
      ),
      rows.length > 500 && h("caption", {}, `the first 500 of ${rows.length}`),
    ),
  );

function scoreChanges(list) {
  const state = {certain: false, most: 60};
  const place = h("div", {});
  const known = list.some((s) => s.within); // tolerances are of the same definition alone
  const excludes = (s) => s.verdict !== "";
  const order = ["worse", "better", "changed", ""];
  const numbers = ["before", "now", "change", "interval, paired", "n"];
  // The score's name has the stage: of a cell its ids are left.
  const idsIn = (cell) => (/\[(.*)\]$/.exec(cell) || ["", ""])[1].replaceAll(",", ", ");
  const most = Math.max(
    ...list.flatMap((s) => [s.low, s.high, s.change].map((x) => Math.abs(x ?? 0))),
    1e-12,
  );
  const bar = (s) => {
    const x = (v) => (40 + (38 * v) / most).toFixed(1);
    return rail(
      svg("line", {x1: 40, x2: 40, y1: 0, y2: 8, class: "rail"}),
      s.low !== null &&
        s.high !== null &&
        svg("line", {x1: x(s.low), x2: x(s.high), y1: 4, y2: 4, class: "span"}),
      s.change !== null && svg("circle", {cx: x(s.change), cy: 4, r: 2.4}),
    );
  };
  function draw() {
    const rows = (state.certain ? list.filter(excludes) : list)
      .slice()
      .sort(
        (a, b) =>
          order.indexOf(a.verdict) - order.indexOf(b.verdict) ||
          Math.abs(b.change ?? 0) - Math.abs(a.change ?? 0),
      );
    fill(
      place,
      scrolling(
        "changed scores",
        h(
          "table",
          {id: "changed"},
          h(
            "caption",
            {},
            `${rows.length} changed ${rows.length === 1 ? "score" : "scores"}, those with a verdict first`,
          ),
          h(
            "thead",
            {},
            h(
              "tr",
              {},
              [
                "score",
                "where",
                "before",
                "now",
                "change",
                "interval, paired",
                "",
                "n",
                ...(known ? ["within tolerance"] : []),
              ].map((t) => h("th", {scope: "col", class: numbers.includes(t) && "number"}, t || "verdict")),
            ),
          ),
          h(
            "tbody",
            {},
            rows
              .slice(0, state.most)
              .map((s) =>
                h(
                  "tr",
                  {},
                  h("td", {}, s.name + (arrows[s.direction] || "")),
                  h("td", {title: s.cell}, idsIn(s.cell)),
                  h("td", {class: "number"}, brief(s.was)),
                  h("td", {class: "number"}, brief(s.is)),
                  h("td", {class: "number"}, s.change === null ? "–" : signed(s.change)),
                  h(
                    "td",
                    {class: "number"},
                    s.paired > 1 && s.low !== null ? `${signed(s.low)} to ${signed(s.high)} ` : "",
                    bar(s),
                  ),
                  h("td", {class: s.verdict}, s.verdict),
                  h("td", {class: "number"}, String(s.paired || "")),
                  known && h("td", {}, s.within),
                ),
              ),
          ),
        ),
      ),
      showAll(rows.length, state.most, "changes", () => {
        state.most = Infinity;
        draw();
      }),
    );
  }
  draw();
  remember(
    "changes",
    () => ({certain: state.certain}),
    (f) => {
      if (f.certain) place.parentNode.querySelector("[data-value=certain]").click();
    },
  );
  return h(
    "div",
    {},
    h(
      "div",
      {class: "controls"},
      modes(
        "which changes",
        [
          ["all", "all"],
          ["certain", "those whose interval excludes 0"],
        ],
        "all",
        (v) => {
          state.certain = v === "certain";
          draw();
        },
      ),
    ),
    place,
  );
}
