// Which images the maps are shown of, and in which order.

const allItems = () => {
  const cell = cellShown();
  return cell ? model.items[cell.items] : [];
};

// The cell of one map over all images, or one of those of all maps of one image.
const cellOfMode = () =>
  view.mode === "images" ? view.stage.cells.find((c) => fits(c, null)) : cellShown();

// Whether the net takes an image for another class than its label; null where either isn't known.
function isWrong(cell, item) {
  const list = cell && model.classes[cell.classes];
  const at = list ? positionOf(list.items, item) : -1;
  if (at < 0 || !list.true || !list.true[at] || !list.predicted || !list.predicted.names[at]) return null;
  return (list.wrong || []).includes(at);
}

// The cells shown with classes, one for each list of classes: maps across nets have several.
function classCells() {
  const cells = view.stage.cells.filter(
    (c) => fits(c, view.mode === "images" ? null : view.across) && c.classes >= 0,
  );
  return cells.filter((c, i) => cells.findIndex((d) => d.classes === c.classes) === i);
}

// The class of an image: its label or, without labels, the predicted or the explained one.
function kindOf(cell, item) {
  const list = cell && model.classes[cell.classes];
  const at = list ? positionOf(list.items, item) : -1;
  return at < 0 ? "" : (list.true || (list.predicted || list).names)[at];
}

// The scores of the images by the maps of an id of the competing axis, in the cell whose other ids are chosen.
function valuesOf(id) {
  const {stage} = view;
  const at = stage.axes.indexOf(board.axis);
  const score = model.scores.find((s) => s.name === view.score);
  const map = score && stage.cells.find((c) => (at < 0 || c.ids[at] === id) && fits(c, board.axis));
  return (
    (map &&
      score.cells.find(
        (c) => c.items >= 0 && agree(score.axes, c.ids, stage.axes, map.ids) && isNow(stage, map),
      )) ||
    null
  );
}

const valueAt = (c, item) => {
  const at = c ? positionOf(c.items, item) : -1;
  return at < 0 ? null : c.values[at];
};

// The number that an image is sorted by: the score of a method, or how much two methods differ in it. Null comes last.
function orderValue(item) {
  const [a, b] = view.order.split("\n");
  const x = valueAt(valuesOf(a), item);
  if (b === undefined) return x;
  const y = valueAt(valuesOf(b), item);
  return x === null || y === null ? null : Math.abs(x - y);
}

function orderText(item) {
  if (!view.order) return "";
  const [a, b] = view.order.split("\n");
  const x = orderValue(item);
  const what = b === undefined ? `${view.score} of ${a}` : `difference of ${a} and ${b} in ${view.score}`;
  return `(${what}: ${x === null ? "undefined" : brief(x)})`;
}

// The images that are chosen, in their order: the worst score or the largest difference first, as what explains most.
function itemsShown() {
  const cell = cellOfMode();
  if (!cell) return [];
  const nets = classCells();
  const chosen = {
    "": () => true,
    wrong: (id) => nets.some((c) => isWrong(c, id)),
    right: (id) => nets.length > 0 && nets.every((c) => isWrong(c, id) === false),
  };
  const test = chosen[view.only] || ((id) => "class " + kindOf(nets[0], id) === view.only);
  const list = model.items[cell.items].filter(test);
  if (!view.order) return list;
  const [a, b] = view.order.split("\n");
  const c = valuesOf(a);
  const sign = b !== undefined || (c && c.direction === "lower") ? -1 : 1;
  const values = new Map(list.map((id) => [id, orderValue(id)]));
  return list.sort((p, q) => {
    const [x, y] = [values.get(p), values.get(q)];
    return (x === null) - (y === null) || sign * (x - y) || 0;
  });
}

// The lists by which images are chosen and sorted.
function itemChoices(redraw) {
  const cell = cellOfMode();
  const parts = [];
  if (!cell) return parts;
  const nets = classCells();
  const classes = nets.length ? model.classes[nets[0].classes] : null;
  const kinds = [...new Set(model.items[cell.items].map((id) => kindOf(nets[0], id)))].filter(Boolean).sort();
  const only = [["", "all"]];
  if (classes && classes.true && classes.predicted)
    only.push(["wrong", "misclassified"], ["right", "rightly classified"]);
  if (kinds.length > 1 && kinds.length <= 200) only.push(...kinds.map((k) => ["class " + k, "class: " + k]));
  if (only.length > 1)
    parts.push(
      choice("images", only, view.only, (v) => {
        view.only = v;
        redraw();
      }),
    );
  const ids = view.stage.axes.includes(board.axis)
    ? bestOf(board.axis, present(view.stage.cells, view.stage.axes, board.axis)).filter(valuesOf)
    : [];
  if (!ids.length || !view.score) return parts;
  const orders = [["", "as listed"], ...ids.map((id) => [id, `worst ${view.score} of ${id}`])];
  const [a, b] = [compared.a, compared.b].map((c) => c && c.ids[view.stage.axes.indexOf(board.axis)]);
  const pairs = [];
  for (const [x, y] of [
    [ids[0], ids[1]],
    [a, b],
  ])
    if (x !== y && ids.includes(x) && ids.includes(y) && !pairs.includes(x + "\n" + y)) pairs.push(x + "\n" + y);
  if (view.order.includes("\n") && !pairs.includes(view.order)) pairs.push(view.order);
  orders.push(...pairs.map((p) => [p, "disagreement of " + p.replace("\n", " and ")]));
  parts.push(
    choice("order", orders, view.order, (v) => {
      view.order = v;
      redraw();
    }),
  );
  return parts;
}
