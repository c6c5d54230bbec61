// What a curve replaced in an image at one of its points: the image with these pixels grey.

const grey = [140, 140, 140, 255];

// The removal that the line of a table is of: the one cell of the curves that the table's stage reads at a place.
function removalOf(table, axes, ids) {
  const sources = (table.curves || []).filter((c) => agree(c.axes, c.ids, axes, ids)).map((c) => c.stage);
  const found = (model.removals || []).filter(
    (r) => sources.includes(r.stage) && agree(r.axes, r.ids, axes, ids),
  );
  return found.length === 1 ? found[0] : null;
}

// The point of a curve at a share: by its place if the table has all points, or else the nearest.
function pointAt(r, share, place, length) {
  if (length === r.shares.length) return place;
  const far = (k) => Math.abs(r.shares[k] - share);
  return r.shares.reduce((best, _, k) => (far(k) < far(best) ? k : best), 0);
}

// Whether a pixel of a step shows the substrate at a point: it is replaced or, of an insertion, not inserted yet.
function replacedAt(r, i, k) {
  const last = ofItem(r.points, i).length - 1;
  if (r.order === "lerf") return (step) => step > last - k;
  return r.order === "insertion" ? (step) => step > k : (step) => step <= k;
}

async function drawRemoved(canvas, r, i, item, k) {
  const asked = (canvas.asked = (canvas.asked || 0) + 1);
  const [steps, photo] = await Promise.all([levelsOf(r), photoOf(r, item)]);
  if (canvas.asked !== asked) return; // the pointer went on
  const [w, hgt] = r.size;
  const small = h("canvas", {width: w, height: hgt});
  const pixels = new ImageData(w, hgt);
  const replaced = replacedAt(r, i, k);
  for (let p = 0; p < w * hgt; p++)
    if (replaced(steps[i * w * hgt + p])) pixels.data.set(grey, 4 * p);
  small.getContext("2d").putImageData(pixels, 0, 0);
  const by = Math.max(1, Math.round(256 / Math.max(w, hgt)));
  canvas.width = w * by;
  canvas.height = hgt * by;
  const g = canvas.getContext("2d");
  g.imageSmoothingEnabled = Boolean(photo) && photo.width >= 96;
  if (photo) g.drawImage(photo, 0, 0, canvas.width, canvas.height);
  g.imageSmoothingEnabled = false;
  g.drawImage(small, 0, 0, canvas.width, canvas.height);
}

// Says exactly what is drawn.
function removedText(r, i, k) {
  const [n, of] = [ofItem(r.points, i)[k], ofItem(r.units, i)];
  const first = r.order === "lerf" ? "the least relevant" : "the most relevant";
  const share = `${first} ${Number(((100 * n) / of).toPrecision(3))} % of the ${r.unit}s (${n} of ${of})`;
  return r.order === "insertion"
    ? `with ${share} inserted; grey: the others, where the net saw ${r.by}`
    : `without ${share}; grey: these, where the net saw ${r.by}`;
}

// A figure of what a line of a table stands for in one image. It is empty where the page hasn't got it.
function removedFigure(table) {
  const canvas = canvasOf("");
  const text = h("figcaption", {});
  const e = h("figure", {class: "removed", hidden: true}, canvas, text);
  e.show = (r, line, item, share, place, length) => {
    const i = r ? positionOf(r.items, item) : -1;
    e.hidden = i < 0;
    if (i < 0) return;
    const points = ofItem(r.points, i);
    const k = pointAt(r, share, place, length);
    if (!points.length) {
      canvas.hidden = true;
      fill(text, h("strong", {}, `${line}, ${item}`), "the map has no order");
      return;
    }
    canvas.hidden = false;
    const row = r.values[i][r.responses.indexOf(table.response)];
    const own = row && typeof row[k] === "number" ? `: ${table.response} ${brief(row[k])}` : "";
    fill(text, h("strong", {}, `${line}, ${item}${own}`), removedText(r, i, k));
    drawRemoved(canvas, r, i, item, k);
  };
  return e;
}
