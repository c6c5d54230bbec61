// The answer: its first sentences, and as pictures who is how good overall, and who is best in each case.

const firstSentences = 3;

// The sentences of a paragraph; a list or a table is one.
const sentencesOf = (block) =>
  /^(\s*- |\||> )/.test(block) ? [block] : block.split(/(?<=[.!?])\s+(?=[\p{Lu}*`])/u);

// Splits answers into what stands on the first screen and the rest. Each answer's first sentence is there, since it
// may be that there is none.
function leadOf(answers) {
  const blocks = answers.map((a) => a.text.split(/\n{2,}/).map(sentencesOf));
  const lead = blocks.map((b) => [b[0][0]]);
  const rest = blocks.map((b) => [b[0].slice(1), ...b.slice(1)]);
  let room = firstSentences - lead.length;
  for (const [i, [first]] of rest.entries()) {
    const more = first.splice(0, Math.max(room, 0));
    lead[i].push(...more);
    room -= more.length;
    if (first.length || rest[i].length > 1) break; // no later answer reads on where an earlier one stops
  }
  const joined = (b) =>
    b
      .map((s) => s.join(" "))
      .filter(Boolean)
      .join("\n\n");
  return [lead.map((s) => s.join(" ")), rest.map(joined)];
}

// The first published table with a number of each competitor and the interval of that number.
function forestTable() {
  for (const t of model.tables) {
    const names = t.columns.map((c) => c.name);
    const texts = t.columns.filter((c) => !c.number);
    if (texts.length !== 1 || texts[0].name !== board.axis || t.rows.length < 2 || t.rows.length < t.len)
      continue;
    const at = t.columns.findIndex(
      (c, i) =>
        c.number &&
        (c.direction === "higher" || c.direction === "lower") &&
        c.name !== "rank" &&
        names[i + 1] === c.name + " low" &&
        names[i + 2] === c.name + " high",
    );
    if (at < 0) continue;
    const number = (s) => (s === "" ? null : Number(s));
    const who = names.indexOf(board.axis);
    return {
      name: t.columns[at].name,
      direction: t.columns[at].direction,
      note: "the line is its interval, from low to high in the table below",
      rows: t.rows.map((r) => ({
        id: r[who],
        mean: number(r[at]),
        low: number(r[at + 1]),
        high: number(r[at + 2]),
      })),
    };
  }
  return rankForest();
}

// Without such a table: the mean ranks, from the best to the worst rank in a case.
function rankForest() {
  const cases = competing()
    .filter((s) => board.scores.has(s.name))
    .flatMap(casesOf);
  const rows = board.best
    .map((id) => ({id, mean: meanRank(cases, id), ranks: ranksOf(cases, id)}))
    .filter((r) => r.mean !== null)
    .map(({id, mean, ranks}) => ({id, mean, low: Math.min(...ranks), high: Math.max(...ranks)}));
  if (rows.length < 2) return null;
  return {
    name: "mean rank",
    direction: "lower",
    note: `the line spans its ranks in ${casesText(cases.length)}, and is no interval of the mean`,
    rows,
  };
}

// A row a competitor: a mean and its interval, the best first.
function forestPlot() {
  const f = forestTable();
  if (!f) return null;
  const sign = f.direction === "lower" ? 1 : -1;
  const rows = f.rows
    .filter((r) => r.mean !== null)
    .sort((a, b) => sign * (a.mean - b.mean))
    .slice(0, 24);
  const all = rows.flatMap((r) => [r.mean, r.low, r.high]).filter((x) => x !== null);
  if (!all.length) return null;
  const [least, most] = [Math.min(...all), Math.max(...all)];
  const short = (id) => (id.length > 22 ? id.slice(0, 21) + "…" : id);
  const letters = Math.max(...rows.map((r) => short(r.id).length));
  const [left, right, line] = [Math.max(90, 20 + 9 * letters), 500, 20]; // 9: wide enough for phones' letters
  const X = (x) => (left + ((right - left) * (x - least)) / (most - least || 1)).toFixed(1);
  const text = aligned(rows.map((r) => r.mean));
  const bottom = rows.length * line;
  const spoken = rows.map(
    (r) => `${r.id} ${text(r.mean)}` + (r.low === null ? "" : ` (${brief(r.low, 3)} to ${brief(r.high, 3)})`),
  );
  const marks = ticks(least, most);
  return h(
    "figure",
    {class: "forest"},
    svg(
      "svg",
      {
        viewBox: `0 0 560 ${bottom + 24}`,
        class: "chart",
        role: "img",
        "aria-label": `${f.name} of each ${board.axis}: ${spoken.join("; ")}`,
      },
      marks.map((x) => [
        svg("line", {x1: X(x), x2: X(x), y1: 0, y2: bottom, class: "grid"}),
        svg("text", {x: X(x), y: bottom + 16, "text-anchor": "middle"}, String(x).replace("-", "−")),
      ]),
      rows.map((r, i) => {
        const y = i * line + line / 2;
        return svg(
          "g",
          {},
          svg("title", {}, spoken[i]),
          svg("text", {x: left - 14, y: y + 4, "text-anchor": "end", class: "who"}, short(r.id)),
          r.low !== null && svg("line", {x1: X(r.low), x2: X(r.high), y1: y, y2: y, class: "span"}),
          svg("circle", {cx: X(r.mean), cy: y, r: 4}),
          svg("text", {x: 556, y: y + 4, "text-anchor": "end", class: "who"}, text(r.mean)),
        );
      }),
    ),
    h(
      "figcaption",
      {},
      `${f.name}${arrows[f.direction]} of each ${board.axis}; ${f.note}`,
      f.rows.length > rows.length ? `. The first ${rows.length} of ${f.rows.length}` : "",
      ".",
    ),
  );
}

// Who has the best mean of each case.
function winnerMatrix() {
  const w = model.winners;
  if (!w) return null;
  // Of many columns and few rows it is turned: it has half the page.
  const turned = w.columns.length > Math.max(w.rows.length, 5);
  const rows = turned ? w.columns : w.rows;
  const columns = turned ? w.rows : w.columns.length > 1 || w.columns[0] ? w.columns : ["best"];
  const cellAt = (i, k) => (turned ? w.cells[k][i] : w.cells[i][k]);
  const field = (c) =>
    h(
      "td",
      {},
      c.ids.join(", "),
      c.near
        ? h(
            "span",
            {class: "near-best", title: `the test doesn't tell ${c.near} others apart from the best`},
            ` +${c.near}`,
          )
        : "",
    );
  return h(
    "figure",
    {class: "winners"},
    scrolling(
      "the best of each case",
      h(
        "table",
        {id: "winners"},
        h("caption", {}, `the best mean of each ${w.axes.join(" and ")}`),
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("th", {scope: "col"}, turned ? w.axes.slice(1).join(", ") : w.axes[0]),
            columns.map((c) => h("th", {scope: "col"}, c)),
          ),
        ),
        h(
          "tbody",
          {},
          rows.map((r, i) =>
            h(
              "tr",
              {},
              h("th", {scope: "row"}, r),
              columns.map((_, k) => field(cellAt(i, k))),
            ),
          ),
        ),
      ),
    ),
    h(
      "figcaption",
      {},
      w.tested
        ? "+n: so many others don't differ significantly from the best, by the tables' test."
        : "No test says here whether the second is worse.",
    ),
  );
}

function answer() {
  const [lead, more] = leadOf(model.answers);
  const texts = model.answers.flatMap((a, i) => [
    a.old && h("p", {class: "note"}, "Of an earlier run, this one didn't finish it:"),
    prose(lead[i]),
  ]);
  const notes = (early) =>
    model.notes
      .filter((t) => t.startsWith("> **Warning:**") === early)
      .map((t) => (t.startsWith("> ") ? h("div", {class: "warning"}, prose(t)) : prose(t)));
  const [first, rest] = [notes(true), notes(false)];
  if (!texts.length && !rest.length)
    texts.push(h("p", {}, "The folder has no answer in words: see its tables and figures."));
  const tail = more.filter(Boolean);
  return section(
    "answer",
    "Answer",
    first,
    h(
      "div",
      {class: "summary"},
      h(
        "div",
        {},
        texts,
        tail.length
          ? h("details", {id: "more"}, h("summary", {}, "the whole answer"), tail.map(prose))
          : "",
        winnerMatrix() || "",
      ),
      forestPlot() || "",
    ),
    rest,
  );
}
