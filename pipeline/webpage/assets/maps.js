// Maps: all maps of one image, or the maps of one cell over all images.

const stops = {
  sequential: [
    [255, 255, 255],
    [255, 228, 145],
    [250, 164, 58],
    [222, 76, 38],
    [150, 18, 40],
    [62, 6, 34],
  ],
  diverging: [
    [8, 42, 104],
    [33, 102, 172],
    [103, 166, 207],
    [194, 220, 236],
    [255, 255, 255],
    [250, 210, 190],
    [234, 140, 112],
    [190, 40, 52],
    [104, 4, 32],
  ],
};

function colourAt(list, t) {
  const at = Math.min(Math.max(t, 0), 1) * (list.length - 1);
  const i = Math.min(Math.floor(at), list.length - 2);
  return list[i].map((a, k) => Math.round(a + (at - i) * (list[i + 1][k] - a)));
}

// The levels of all maps of a cell, unpacked once.
const unpacked = new Map();
function levelsOf(cell) {
  if (!unpacked.has(cell.blob)) {
    const bytes = Uint8Array.from(atob(document.getElementById("blob" + cell.blob).textContent), (c) =>
      c.charCodeAt(0),
    );
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    unpacked.set(
      cell.blob,
      new Response(stream).arrayBuffer().then((b) => new Uint8Array(b)),
    );
  }
  return unpacked.get(cell.blob);
}

const ofItem = (list, i) => list[list.length === 1 ? 0 : i];
const sizeOf = (cell, i) => ofItem(cell.sizes, i);

// How large a map is on the page, of how large it is, by its longer side.
function sizeText(cell, i) {
  const shown = Math.max(...sizeOf(cell, i));
  const full = Math.max(...ofItem(cell.full || cell.sizes, i));
  return full < 0 ? `${shown} px of a thumbnail` : `${shown} of ${full} px`;
}

function offsetOf(cell, i) {
  if (cell.sizes.length === 1) return i * cell.sizes[0][0] * cell.sizes[0][1];
  let at = 0;
  for (let k = 0; k < i; k++) at += cell.sizes[k][0] * cell.sizes[k][1];
  return at;
}

const photos = new Map();
function photoOf(cell, item) {
  const list = model.images[cell.images];
  const at = list ? positionOf(list.items, item) : -1;
  if (at < 0 || !list.src[at]) return Promise.resolve(null);
  if (!photos.has(list.src[at])) {
    const image = new Image();
    image.src = list.src[at];
    photos.set(
      list.src[at],
      image.decode().then(
        () => image,
        () => null,
      ),
    );
  }
  return photos.get(list.src[at]);
}

const isNow = (stage, cell) => {
  const at = stage.axes.indexOf("version");
  return at < 0 || cell.ids[at] === "now";
};

const stateOf = (cell, i) => (cell.states ? cell.states[i] : "");

// What a score reads of the sum over channels, by the word for it.
const readings = {
  magnitude: {text: "the magnitude of a pixel's sum over channels", of: Math.abs},
  positive: {text: "the positive part of a pixel's sum over channels", of: (v) => Math.max(v, 0)},
};

// What is drawn of a map: a function if the chosen score reads other values than the map has. A reduced map is drawn as
// it is, since the magnitude of a mean isn't the mean of magnitudes.
function readOf(cell) {
  const score = view.values === "read" && model.scores.find((s) => s.name === view.score);
  return cell.signed && !cell.full && score && readings[score.reads] ? readings[score.reads].of : null;
}

// One scale for several maps, or null if none of them has values.
function commonScale(list) {
  const seen = list.filter(([cell, i]) => cell && i >= 0 && !stateOf(cell, i));
  if (!seen.length) return null;
  const own = seen.map(([cell, i]) => ownScale(cell, i));
  const isSigned = own.some((s) => s.signed);
  const ends = own.map((s) => [s.low, s.high]);
  const high = Math.max(
    ...ends.map((e) => e[1]),
    isSigned ? Math.max(...ends.map((e) => -e[0])) : -Infinity,
  );
  return {signed: isSigned, low: isSigned ? -high : Math.min(...ends.map((e) => e[0])), high};
}

function ownScale(cell, i) {
  const [low, high] = cell.ends[i];
  const read = readOf(cell);
  if (!read) return {signed: Boolean(cell.signed), low, high};
  const all = [read(low), read(high)];
  return {signed: false, low: low <= 0 && high >= 0 ? 0 : Math.min(...all), high: Math.max(...all)};
}
const scaleText = (s) => (s.signed ? "±" + brief(s.high, 3) : brief(s.low, 3) + " … " + brief(s.high, 3));

// Draws a map over its image.
async function drawMap(canvas, cell, item, scale, strength, side = 192) {
  const i = positionOf(cell.items, item);
  const [levels, photo] = await Promise.all([levelsOf(cell), photoOf(cell, item)]);
  const [w, hgt] = sizeOf(cell, i);
  const k = Math.max(1, Math.round(side / Math.max(w, hgt)));
  canvas.width = w * k;
  canvas.height = hgt * k;
  const g = canvas.getContext("2d");
  g.fillStyle = "#fff";
  g.fillRect(0, 0, canvas.width, canvas.height);
  g.imageSmoothingEnabled = Boolean(photo) && photo.width >= 96;
  if (photo) g.drawImage(photo, 0, 0, canvas.width, canvas.height);
  const state = stateOf(cell, i);
  if (state) {
    g.fillStyle = `rgba(240, 240, 240, ${strength})`;
    g.fillRect(0, 0, canvas.width, canvas.height);
    return;
  }
  const s = scale || ownScale(cell, i);
  const [low, high] = cell.ends[i];
  const read = readOf(cell) || ((v) => v);
  const list = s.signed ? stops.diverging : stops.sequential;
  const table = new Uint32Array(256);
  for (let q = 0; q < 256; q++) {
    const v = read(low + ((q - 1) / 254) * (high - low));
    const [r, gr, b] = colourAt(list, s.high === s.low ? 0.5 : (v - s.low) / (s.high - s.low));
    table[q] = ((255 << 24) | (b << 16) | (gr << 8) | r) >>> 0;
  }
  const small = document.createElement("canvas");
  small.width = w;
  small.height = hgt;
  const pixels = new ImageData(w, hgt);
  const out = new Uint32Array(pixels.data.buffer);
  const at = offsetOf(cell, i);
  for (let p = 0; p < out.length; p++) out[p] = table[levels[at + p]];
  small.getContext("2d").putImageData(pixels, 0, 0);
  g.globalAlpha = strength;
  g.imageSmoothingEnabled = false;
  g.drawImage(small, 0, 0, canvas.width, canvas.height);
  g.globalAlpha = 1;
}

async function drawPhoto(canvas, cell, item, side = 192) {
  const photo = await photoOf(cell, item);
  if (!photo) return;
  const k = Math.max(1, Math.round(side / Math.max(photo.width, photo.height)));
  canvas.width = photo.width * k;
  canvas.height = photo.height * k;
  const g = canvas.getContext("2d");
  g.imageSmoothingEnabled = photo.width >= 96;
  g.drawImage(photo, 0, 0, canvas.width, canvas.height);
}

// Calls draw once: when the element comes into view, or earlier while the browser is idle. A print can't wait, so
// that everything is drawn before it.
function whenSeen(e, draw) {
  const once = () => {
    waiting.delete(once);
    seen.disconnect();
    return draw();
  };
  const seen = new IntersectionObserver(
    (entries) => {
      if (entries.some((entry) => entry.isIntersecting)) once();
    },
    {rootMargin: "300px"},
  );
  seen.observe(e);
  waiting.add(once);
  drawAhead();
}
const waiting = new Set(); // functions that draw what isn't drawn yet
const idle = window.requestIdleCallback || ((f) => setTimeout(f, 50));
let drawing = false;

function drawAhead() {
  if (drawing) return;
  drawing = true;
  idle(async () => {
    const [draw] = waiting;
    if (draw) await draw();
    drawing = false;
    if (waiting.size) drawAhead();
  });
}

const canvasOf = (label) =>
  h("canvas", {
    class: "map",
    width: 1,
    height: 1,
    role: label && "img",
    "aria-label": label,
    "aria-hidden": !label && "true",
  });

// An image with its map.
function drawPair(place, {cell}, item, scale = null, strength = 1) {
  const [a, b] = [canvasOf(), canvasOf()];
  fill(place, a, b);
  drawPhoto(a, cell, item, 96);
  return drawMap(b, cell, item, scale, strength, 96);
}

const view = {
  stage: null,
  fixed: {},
  across: "",
  mode: "maps",
  item: "",
  one: "",
  score: "",
  strength: 1,
  scale: "own",
  order: "", // of the images: "" as they are, a method, or two methods
  values: "map", // what is drawn: the maps, or what the score reads of them
  only: "", // which images: "" all, "right", "wrong", or a class
};

const tilesPlace = h("div", {class: "tiles"});
const mapControls = h("div", {class: "controls"});
const imageNote = h("div", {class: "image-note"});
const scaleNote = h("p", {class: "note"});

// The cell whose net and images the choices of the view are about.
const cellShown = () => view.stage.cells.find((c) => fits(c, view.across));

const fits = (cell, without) =>
  view.stage.axes.every(
    (axis, i) => axis === without || !(axis in view.fixed) || view.fixed[axis] === cell.ids[i],
  );

// The ids of an axis. On the competing axis the best come first.
const bestOf = (axis, ids) =>
  axis === board.axis && board.best.some((id) => ids.includes(id))
    ? board.best.filter((id) => ids.includes(id))
    : ids;

function setStage(name) {
  view.stage = model.maps.find((s) => s.stage === name);
  const axes = view.stage.axes;
  view.across = axes.includes(model.rank) ? model.rank : axes.find((a) => a !== "version") || "";
  view.fixed = {};
  for (const axis of axes) {
    const ids = present(view.stage.cells, axes, axis);
    view.fixed[axis] = axis === "version" ? "now" : bestOf(axis, ids)[0];
  }
  view.only = view.order = "";
  const ids = itemsShown();
  if (!ids.includes(view.item)) view.item = ids[0] || "";
  const usual = scoresOf(view.stage);
  if (!usual.some((s) => s.name === view.score))
    view.score = (
      usual.find((s) => model.ranked.includes(s.name)) ||
      usual.find((s) => competing().includes(s)) ||
      usual[0] || {name: ""}
    ).name;
}

// The scores of items by the maps of a stage.
const scoresOf = (stage) =>
  model.scores.filter(
    (s) =>
      stage.axes.some((a) => s.axes.includes(a)) &&
      s.cells.some((c) =>
        stage.cells.some(
          (m) =>
            agree(s.axes, c.ids, stage.axes, m.ids) &&
            c.items >= 0 &&
            positionOf(c.items, model.items[m.items][0]) >= 0,
        ),
      ),
  );

// The score of a map, with the ids that the map doesn't have.
function scoreOf(stage, cell, item) {
  const list = isNow(stage, cell) ? model.scores : model.changes.was;
  const score = list.find((s) => s.name === view.score);
  if (!score) return "";
  const found = score.cells.filter(
    (c) => agree(score.axes, c.ids, stage.axes, cell.ids) && c.items >= 0 && positionOf(c.items, item) >= 0,
  );
  return found
    .slice(0, 4)
    .map((c) => {
      const rest = score.axes
        .map((a, i) => (stage.axes.includes(a) ? "" : c.ids[i]))
        .filter(Boolean)
        .join(" ");
      const x = c.values[positionOf(c.items, item)];
      return (rest ? rest + " " : "") + (x === null ? "undefined" : brief(x));
    })
    .join(", ");
}

// The class that a map explains, and the one that its net predicts.
function classOf(cell, item) {
  const list = model.classes[cell.classes];
  const at = list ? positionOf(list.items, item) : -1;
  if (at < 0) return "";
  const named = ({names, p}) => names[at] && names[at] + (p ? `, p\u00a0=\u00a0${brief(p[at], 3)}` : "");
  const explained = named(list);
  const predicted = explained && list.predicted && named(list.predicted);
  if (!predicted) return explained;
  const same = list.predicted.names[at] === list.names[at];
  return same ? "predicted " + explained : `explained ${explained}; predicted ${predicted}`;
}

// The label of an image, with a mark where the net takes it for another class.
function truthOf(cell, item) {
  const list = model.classes[cell.classes];
  const at = list ? positionOf(list.items, item) : -1;
  if (at < 0 || !list.true || !list.true[at]) return "";
  return isWrong(cell, item)
    ? h("span", {class: "score wrong"}, `✗ misclassified: it is ${list.true[at]}`)
    : h("span", {class: "score"}, "label " + list.true[at]);
}


function tile(cell, item, name, scale, of) {
  const i = positionOf(cell.items, item);
  if (i < 0) return null;
  const state = stateOf(cell, i);
  const score = scoreOf(view.stage, cell, item);
  const s = scale || ownScale(cell, i);
  const ends = state === "constant" ? `constant ${brief(cell.ends[i][0], 3)}` : state || scaleText(s);
  const canvas = canvasOf();
  const named = `map of ${item} by ${placeOf(view.stage.axes, cell.ids)}`;
  const label = [named, score && "score " + score, of, ends].filter(Boolean).join(", ");
  const open = h(
    "button",
    {
      type: "button",
      class: "tile",
      "aria-label": label + "; choose it to compare",
      onclick: () => show.map(cell, item),
    },
    canvas,
  );
  const e = h(
    "figure",
    {class: "tile-figure"},
    open,
    h(
      "figcaption",
      {},
      h("strong", {}, name),
      score && h("span", {class: "score"}, score),
      of && h("span", {class: "score"}, of),
      view.mode === "images" ? truthOf(cell, item) : "",
      h("span", {class: "ends"}, ends),
    ),
  );
  [e.cell, e.item] = [cell, item];
  whenSeen(e, () =>
    view.mode === "maps"
      ? drawMap(canvas, cell, item, scale, view.strength)
      : drawPair(open, {cell}, item, scale, view.strength),
  );
  return e;
}

function drawTiles() {
  waiting.clear();
  const stage = view.stage;
  const at = stage.axes.indexOf(view.across);
  const ids = itemsShown();
  if (!ids.includes(view.item)) view.item = ids[0] || "";
  let list;
  if (view.mode === "maps") {
    list = present(stage.cells, stage.axes, view.across).map((id) => [
      stage.cells.find((c) => c.ids[at] === id && fits(c, view.across)),
      view.item,
      id,
    ]);
    if (!list.length) list = stage.cells.map((c) => [c, view.item, c.cell]);
  } else {
    const cell = cellOfMode();
    list = cell ? ids.map((id) => [cell, id, id]) : [];
  }
  list = list.filter(([cell]) => cell);
  const scale =
    view.scale === "common"
      ? commonScale(list.map(([cell, item]) => [cell, positionOf(cell.items, item)]))
      : null;
  // Maps of one net explain one class: it stands below the image alone.
  const classes = list.map(([cell, item]) => classOf(cell, item));
  const one = view.mode === "maps" && new Set(classes.filter(Boolean)).size === 1;
  const tiles = list.map(([cell, item, name], i) => tile(cell, item, name, scale, one ? "" : classes[i]));
  tilesPlace.classList.toggle("pairs", view.mode === "images");
  if (view.mode === "maps" && list.length && view.item) {
    const [cell] = list.find(([c]) => classOf(c, view.item)) || list[0];
    const canvas = canvasOf(`image ${view.item}`);
    tiles.unshift(
      h(
        "figure",
        {class: "tile-figure"},
        h("div", {class: "tile"}, canvas),
        h(
          "figcaption",
          {},
          h("strong", {}, view.item),
          h("span", {class: "score"}, one && classOf(cell, view.item)),
          truthOf(cell, view.item),
        ),
      ),
    );
    drawPhoto(canvas, cell, view.item);
  }
  const n = ids.indexOf(view.item) + 1;
  fill(
    imageNote,
    !ids.length
      ? h("p", {}, "No image is such: choose others by the list “images”.")
      : view.mode === "maps"
        ? h("p", {}, `image ${n} of ${ids.length}: `, h("strong", {}, view.item), " ", orderText(view.item))
        : h("p", {}, `${ids.length} of ${allItems().length} images`),
  );
  fill(tilesPlace, ...tiles);
  drawScaleNote(scale, list);
  drawCompare();
}

function drawScaleNote(scale, list) {
  const isSigned = scale ? scale.signed : list.some(([cell]) => cell.signed && !readOf(cell));
  const meaning = isSigned ? "red is evidence for the class, blue against it" : "dark is much";
  const at = list.map(([cell, item]) => [cell, positionOf(cell.items, item)]).filter(([, i]) => i >= 0);
  const sizes = [...new Set(at.map(([cell, i]) => sizeText(cell, i)))].sort();
  const reduced = at.some(([cell]) => cell.full);
  const bar = (colours) => {
    const canvas = h("canvas", {class: "bar", width: 120, height: 10, "aria-hidden": "true"});
    const g = canvas.getContext("2d");
    for (let x = 0; x < 120; x++) {
      g.fillStyle = `rgb(${colourAt(colours, x / 119).join(",")})`;
      g.fillRect(x, 0, 1, 10);
    }
    return canvas;
  };
  fill(
    scaleNote,
    bar(isSigned ? stops.diverging : stops.sequential),
    " ",
    scale
      ? `all maps: ${scaleText(scale)}; `
      : "each map has its own ends, printed below it, the extreme half percent left out; ",
    meaning,
    model.classes.some((c) => c.p) ? "; p is the net's probability of a class." : ".",
    sizes.length ? ` Shown at ${sizes.join(", ")}` : "",
    reduced ? ": a pixel is the mean of the area that it covers, and the ends are those of the whole map." : "",
    sizes.length && !reduced ? "." : "",
    readingText(list.map(([cell]) => cell)),
  );
}

// What the chosen score reads of signed maps: an explanation, since colours alone would mislead.
function readingText(cells) {
  const score = model.scores.find((s) => s.name === view.score);
  const some = cells.some((c) => c.signed);
  if (!some || !score || !score.reads) return "";
  if (score.reads === "signed") return ` ${score.name} reads signed values, as they are drawn.`;
  const text = ` ${score.name} reads ${readings[score.reads].text}`;
  if (view.values !== "read")
    return text + (score.reads === "magnitude" ? ": red and blue count alike." : ": blue counts nothing.");
  return cells.some((c) => c.signed && c.full)
    ? text + "; maps that are reduced here are drawn as they are, since that of a mean isn't the mean of it."
    : text + ", which is drawn.";
}

// The next image, or, of one map over all images, the next map.
function step(by) {
  const next = (ids, id) => ids[(ids.indexOf(id) + by + ids.length) % ids.length] || "";
  const {stage, across, fixed} = view;
  if (view.mode === "maps") view.item = next(itemsShown(), view.item);
  else if (across) fixed[across] = next(present(stage.cells, stage.axes, across), fixed[across]);
  drawControls();
  drawTiles();
  say(view.mode === "maps" ? `image ${view.item}` : `${across} ${fixed[across]}`);
}

function drawControls() {
  const stage = view.stage;
  const redraw = () => {
    drawControls();
    drawTiles();
  };
  const parts = [];
  if (model.maps.length > 1) {
    parts.push(
      choice(
        "maps",
        model.maps.map((s) => [s.stage, s.stage]),
        stage.stage,
        (v) => {
          setStage(v);
          redraw();
        },
      ),
    );
  }
  parts.push(
    modes(
      "what to show",
      [
        ["maps", `one image, every ${view.across || "map"}`],
        ["images", `one ${view.across || "map"}, every image`],
      ],
      view.mode,
      (v) => {
        view.mode = v;
        redraw();
      },
    ),
  );
  for (const axis of stage.axes) {
    const ids = present(stage.cells, stage.axes, axis);
    if ((axis === view.across && view.mode === "maps") || ids.length < 2) continue;
    parts.push(
      choice(
        axis,
        ids.map((id) => [id, id]),
        view.fixed[axis],
        (v) => {
          view.fixed[axis] = v;
          redraw();
        },
      ),
    );
  }
  const turns = stage.axes.filter((a) => a !== "version" && present(stage.cells, stage.axes, a).length > 1);
  if (turns.length > 1 && view.mode === "maps") {
    parts.push(
      choice(
        "beside each other",
        turns.map((a) => [a, a]),
        view.across,
        (v) => {
          view.across = v;
          redraw();
        },
      ),
    );
  }
  if (view.mode === "maps") {
    parts.push(
      choice(
        "image",
        itemsShown().map((id) => [id, id]),
        view.item,
        (v) => {
          view.item = v;
          drawTiles();
        },
      ),
    );
  }
  parts.push(...itemChoices(redraw));
  const stepper = (by, key, text) =>
    h(
      "button",
      {type: "button", "aria-keyshortcuts": key, "data-key": key, onclick: () => step(by)},
      `${text} (${key})`,
    );
  parts.push(h("span", {class: "control"}, stepper(-1, "p", "previous"), stepper(1, "n", "next")));
  const scores = scoresOf(stage);
  if (scores.length)
    parts.push(
      choice(
        "score",
        scores.map((s) => [s.name, s.name + arrowOf(s)]),
        view.score,
        (v) => {
          view.score = v;
          redraw();
        },
      ),
    );
  parts.push(
    range("map over image", 100 * view.strength, (v) => {
      view.strength = v / 100;
      drawTiles();
    }),
  );
  parts.push(
    modes(
      "colour scale",
      [
        ["own", "own scale"],
        ["common", "common scale"],
      ],
      view.scale,
      (v) => {
        view.scale = v;
        drawTiles();
      },
    ),
  );
  const read = model.scores.find((s) => s.name === view.score);
  if (read && readings[read.reads] && stage.cells.some((c) => c.signed && !c.full))
    parts.push(
      modes(
        "values",
        [
          ["map", "the maps"],
          ["read", "what the score reads"],
        ],
        view.values,
        (v) => {
          view.values = v;
          drawTiles();
        },
      ),
    );
  fill(mapControls, ...parts);
}

show.image = ({stage, cell}, item, score) => {
  if (score) view.score = score;
  setStage(stage.stage);
  stage.axes.forEach((axis, i) => {
    view.fixed[axis] = cell.ids[i];
  });
  view.item = item;
  view.mode = "maps";
  compared.a = cell;
  drawControls();
  drawTiles();
  goTo("maps-title");
};

const viewFields = () => ({
  stage: view.stage.stage,
  mode: view.mode,
  across: view.across,
  item: view.item,
  score: view.score,
  order: view.order,
  only: view.only,
  scale: view.scale,
  values: view.values,
  strength: view.strength,
  fixed: Object.entries(view.fixed).filter(([axis]) => axis !== view.across || view.mode === "images"),
});

// Shows the maps of an address. What depends on something else comes after it.
function setView(f) {
  if (model.maps.some((s) => s.stage === f.stage)) setStage(f.stage);
  const {axes, cells} = view.stage;
  if (["maps", "images"].includes(f.mode)) view.mode = f.mode;
  if (axes.includes(f.across)) view.across = f.across;
  for (const [axis, id] of f.fixed || [])
    if (axes.includes(axis) && present(cells, axes, axis).includes(id)) view.fixed[axis] = id;
  if (scoresOf(view.stage).some((s) => s.name === f.score)) view.score = f.score;
  if (["map", "read"].includes(f.values)) view.values = f.values;
  if (["own", "common"].includes(f.scale)) view.scale = f.scale;
  if (f.strength >= 0 && f.strength <= 1) view.strength = f.strength;
  const ids = present(cells, axes, board.axis);
  if (f.order !== undefined && f.order.split("\n").every((id) => ids.includes(id))) view.order = f.order;
  if (f.only !== undefined) view.only = f.only;
  if (f.item !== undefined && itemsShown().includes(f.item)) view.item = f.item;
  drawControls();
  drawTiles();
}

function mapsSection() {
  if (!model.maps.length) {
    return section(
      "maps",
      "Maps",
      h("p", {}, (model.left || []).find((t) => t.includes("maps")) || "The folder has no maps."),
    );
  }
  // The maps to begin with are those that compete by the most scores.
  const list = model.maps.filter((s) => s.axes.includes(model.rank));
  const count = (s) => scoresOf(s).filter((x) => competing().includes(x)).length;
  setStage((list.sort((a, b) => count(b) - count(a))[0] || model.maps[0]).stage);
  const e = section("maps", "Maps", mapControls, imageNote, scaleNote, tilesPlace, tray, comparePlace);
  drawControls();
  drawTiles();
  remember("maps", viewFields, setView);
  remember("compare", comparedFields, setCompared);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === "SELECT") return;
    if (event.key === "n") step(1);
    else if (event.key === "p") step(-1);
    else if (event.key === "b") blink();
    else return;
    event.preventDefault();
  });
  return e;
}
