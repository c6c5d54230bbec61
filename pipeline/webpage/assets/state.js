// The folder's model, and functions that several parts of the page use.

const model = JSON.parse(document.getElementById("model").textContent);
const arrows = {higher: "\u00a0↑", lower: "\u00a0↓"}; // on the line of the name
const better = {higher: "higher is better", lower: "lower is better"};

// Functions by which the parts of the page call each other; each part sets its own.
const show = {image: null, map: null, text: null};

function brief(x, digits = 4) {
  if (x === null || x === undefined) return "–";
  if (x !== 0 && (Math.abs(x) < 1e-3 || Math.abs(x) >= 1e5))
    return x.toExponential(digits - 2).replaceAll("-", "−");
  const size = x === 0 ? 0 : Math.floor(Math.log10(Math.abs(x)));
  const text = x.toFixed(Math.max(0, digits - 1 - Math.max(size, 0) + Math.max(-1 - size, 0)));
  return text.replaceAll("-", "−");
}

// Writes the numbers of a column with one number of decimals, so that their points stand below each other: those
// that give the largest four digits. A number that would look like 0 is written by itself.
function aligned(numbers, digits = 4) {
  const sizes = numbers.filter((x) => x).map(Math.abs);
  const most = Math.max(...sizes);
  if (!sizes.length || most < 1e-3 || most >= 1e5) return (x) => brief(x, digits);
  const decimals = Math.max(0, digits - 1 - Math.floor(Math.log10(most)));
  return (x) => {
    if (x === null || x === undefined) return "–";
    return x && Math.abs(x) < 0.5 * 10 ** -decimals ? brief(x, 3) : x.toFixed(decimals).replace("-", "−");
  };
}

const casesText = (n) => (n === 1 ? "1 case" : `${n} cases`);

const signed = (x) => (x > 0 ? "+" : "") + brief(x, 3);

const idsOf = (axis) => (model.axes.find((a) => a.name === axis) || {ids: []}).ids;

// The ids that cells have on one of their axes, in the experiment's order.
function present(cells, axes, axis) {
  const at = axes.indexOf(axis);
  const found = new Set(cells.map((c) => c.ids[at]));
  const known = idsOf(axis).filter((id) => found.has(id));
  return known.concat([...found].filter((id) => !known.includes(id)));
}

// Whether two places agree on the axes that both have.
function agree(axesA, a, axesB, b) {
  return axesA.every((axis, i) => {
    const k = axesB.indexOf(axis);
    return k < 0 || a[i] === b[k];
  });
}

const placeOf = (axes, ids, without) =>
  axes
    .map((axis, i) => (axis === without ? null : ids[i]))
    .filter((id) => id !== null)
    .join(" ");

const positions = new Map(); // of ids, by list
function positionOf(list, id) {
  if (!positions.has(list)) positions.set(list, new Map(model.items[list].map((x, i) => [x, i])));
  const at = positions.get(list).get(id);
  return at === undefined ? -1 : at;
}

const live = h("p", {class: "status", role: "status"});
const say = (text) => {
  live.textContent = text;
};

const sections = [];
function section(id, title, ...children) {
  const e = h(
    "section",
    {id, "aria-labelledby": id + "-title"},
    h("h2", {id: id + "-title"}, title),
    ...children,
  );
  sections.push([id, title, e]);
  return e;
}
