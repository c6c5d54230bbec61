// Two pictures: side by side, under a slider, or blinking.

// A viewer of two pictures. draw(a, b) draws them on two canvases, or sets the sources of two images.
function viewer(label) {
  const state = {mode: "side", blinking: false, shown: 0, timer: 0};
  const a = h("figure", {class: "picture"});
  const b = h("figure", {class: "picture"});
  const stage = h("div", {class: "stage side"}, a, b);
  const cut = (v) => stage.style.setProperty("--cut", v + "%");
  const slider = range("slider", 50, cut);
  cut(50);
  stage.addEventListener("pointermove", (event) => {
    const picture = a.querySelector("canvas, img");
    if (state.mode !== "slider" || !picture || !(event.pointerType === "mouse" || event.buttons)) return;
    const box = picture.getBoundingClientRect();
    const input = slider.querySelector("input");
    input.value = (100 * (event.clientX - box.left)) / box.width;
    input.dispatchEvent(new Event("input"));
  });
  const flip = h(
    "button",
    {type: "button", "aria-keyshortcuts": "b", onclick: () => e.blink()},
    "flip (b)",
  );
  const auto = h(
    "button",
    {type: "button", "aria-pressed": "false", onclick: () => setAuto(!state.blinking)},
    "blink by itself",
  );
  const name = h("p", {class: "shown", "aria-live": "off"});
  function apply() {
    stage.className = "stage " + state.mode;
    stage.classList.toggle("second", state.mode === "blink" && state.shown === 1);
    slider.hidden = state.mode !== "slider";
    flip.hidden = auto.hidden = state.mode !== "blink";
    name.textContent = state.mode === "blink" ? "shown: " + (state.shown ? b : a).dataset.name : "";
  }
  function setAuto(on) {
    state.blinking = on;
    auto.setAttribute("aria-pressed", String(on));
    clearInterval(state.timer);
    if (on)
      state.timer = setInterval(() => {
        state.shown = 1 - state.shown;
        apply();
      }, 700);
  }
  const choose = modes(
    label,
    [
      ["side", "side by side"],
      ["slider", "slider"],
      ["blink", "blink"],
    ],
    "side",
    (v) => {
      state.mode = v;
      if (v !== "blink") setAuto(false);
      apply();
    },
  );
  const e = h(
    "div",
    {class: "viewer"},
    h("div", {class: "controls"}, choose, slider, flip, auto),
    name,
    stage,
  );
  e.blink = () => {
    if (state.mode !== "blink") {
      choose.querySelector("[data-value=blink]").click();
    } else {
      state.shown = 1 - state.shown;
      apply();
      say("shown: " + (state.shown ? b : a).dataset.name);
    }
  };
  e.fields = () => ({mode: state.mode, cut: Number(slider.querySelector("input").value)});
  e.restore = (f) => {
    const button = [...choose.children].find((b) => b.dataset.value === f.mode);
    if (button) button.click();
    if (f.cut >= 0 && f.cut <= 100) {
      const input = slider.querySelector("input");
      input.value = f.cut;
      input.dispatchEvent(new Event("input"));
    }
  };
  e.set = (one, two) => {
    [
      [a, one],
      [b, two],
    ].forEach(([place, [title, picture, note]]) => {
      place.dataset.name = title;
      fill(
        place,
        h("figcaption", {}, h("strong", {}, title), note ? h("span", {class: "score"}, note) : ""),
        picture,
      );
    });
    apply();
  };
  apply();
  return e;
}

const compared = {a: null, b: null, item: "", next: "a"};
const comparePlace = h("div", {class: "compare"});
let mapViewer = null;

const blink = () => {
  if (mapViewer) mapViewer.blink();
};

show.map = (cell, item) => {
  compared[compared.next] = cell;
  compared.item = view.item = item;
  say(`${placeOf(view.stage.axes, cell.ids)} is map ${compared.next.toUpperCase()} of the comparison`);
  compared.next = compared.next === "a" ? "b" : "a";
  drawControls();
  drawCompare();
};

// What is chosen stays in sight below the tiles: a small picture of each, and the way to the large ones.
const tray = h("div", {class: "tray"});

function drawTray() {
  const item = compared.item;
  const small = (which) => {
    const cell = compared[which];
    const canvas = canvasOf();
    if (positionOf(cell.items, item) >= 0) drawMap(canvas, cell, item, null, view.strength, 64);
    const next = compared.next === which ? ", the next to be chosen" : "";
    return h(
      "span",
      {class: "chosen", title: `map ${which.toUpperCase()}${next}`},
      h("span", {class: "badge"}, which.toUpperCase()),
      canvas,
      h("span", {class: "id"}, placeOf(view.stage.axes, cell.ids) || cell.cell),
    );
  };
  fill(
    tray,
    small("a"),
    small("b"),
    h(
      "button",
      {type: "button", "data-key": "compare", onclick: () => goTo("compare-title")},
      "compare them, large",
    ),
  );
  for (const e of tilesPlace.querySelectorAll(".tile-figure")) {
    const names = ["a", "b"].filter((which) => e.cell && e.cell === compared[which] && e.item === item);
    const badge = e.querySelector(".badge");
    if (badge) badge.remove();
    e.classList.toggle("chosen-map", names.length > 0);
    if (names.length) e.prepend(h("span", {class: "badge"}, names.join(" ").toUpperCase()));
  }
}

const comparedFields = () => ({a: compared.a.cell, b: compared.b.cell, ...versionsOf(), ...mapViewer.fields()});

// Cells of both versions have one name.
const versionsOf = () => {
  const at = view.stage.axes.indexOf("version");
  const of = (cell) => (at < 0 ? "" : cell.ids[at]);
  return {"a version": of(compared.a), "b version": of(compared.b)};
};

function setCompared(f) {
  const at = view.stage.axes.indexOf("version");
  for (const which of ["a", "b"]) {
    const version = f[which + " version"] || versionsOf()[which + " version"];
    const name = f[which] || compared[which].cell;
    const cell = view.stage.cells.find((c) => c.cell === name && (at < 0 || c.ids[at] === version));
    if (cell) compared[which] = cell;
  }
  mapViewer.restore(f);
  drawControls();
  drawCompare();
}

function drawCompare() {
  const stage = view.stage;
  const cells = stage.cells;
  const at = stage.axes.indexOf(view.across);
  const beside = present(cells, stage.axes, view.across)
    .map((id) => cells.find((c) => c.ids[at] === id && fits(c, view.across)))
    .filter(Boolean);
  const best = bestOf(
    view.across,
    beside.map((c) => c.ids[at]),
  );
  const [first, second] = best.map((id) => beside.find((c) => c.ids[at] === id));
  if (!cells.includes(compared.a)) compared.a = first || cells[0];
  if (!cells.includes(compared.b)) {
    const version = stage.axes.indexOf("version");
    const before = version >= 0 && cells.find((c) => c.ids[version] === "before");
    if (before) {
      compared.a = before;
      compared.b = cells.find((c) =>
        c.ids.every((id, i) => (i === version ? id === "now" : id === before.ids[i])),
      );
    }
    compared.b = compared.b && cells.includes(compared.b) ? compared.b : second || cells[cells.length - 1];
  }
  compared.item = view.item;
  if (!mapViewer) mapViewer = viewer("how to compare two maps");
  const pick = (which) =>
    h(
      "span",
      {class: "control pick"},
      h("strong", {}, which.toUpperCase()),
      stage.axes.map((axis, i) => {
        const ids = present(cells, stage.axes, axis);
        if (ids.length < 2) return null;
        return choice(
          `${axis} of ${which.toUpperCase()}`,
          ids.map((id) => [id, id]),
          compared[which].ids[i],
          (v) => {
            const was = compared[which].ids;
            const distance = (c) => c.ids.filter((id, k) => id !== (k === i ? v : was[k])).length;
            compared[which] = cells
              .filter((c) => c.ids[i] === v)
              .sort((x, y) => distance(x) - distance(y))[0];
            drawCompare();
          },
        );
      }),
    );
  const item = compared.item;
  const pair = [compared.a, compared.b];
  const common =
    view.scale === "common" ? commonScale(pair.map((c) => [c, positionOf(c.items, item)])) : null;
  const pictures = pair.map((cell) => {
    const i = positionOf(cell.items, item);
    const title = placeOf(stage.axes, cell.ids) || cell.cell;
    if (i < 0) return [title, h("p", {}, `no map of ${item}`), ""];
    const state = stateOf(cell, i);
    const scale = common || ownScale(cell, i);
    const canvas = canvasOf(`map of ${item}, ${title}`);
    const score = scoreOf(stage, cell, item);
    const ends = state === "constant" ? `constant ${brief(cell.ends[i][0], 3)}` : state || scaleText(scale);
    const named = [score && `${view.score} ${score}`, classOf(cell, item), ends, sizeText(cell, i)]
      .filter(Boolean)
      .join(" · ");
    drawMap(canvas, cell, item, common, view.strength, 768);
    return [title, canvas, named];
  });
  mapViewer.set(...pictures);
  if (!comparePlace.firstChild) {
    comparePlace.append(h("h3", {id: "compare-title"}, "Two maps"), h("div", {class: "controls picks"}), mapViewer);
  }
  fill(
    comparePlace.querySelector(".picks"),
    pick("a"),
    pick("b"),
    h("span", {class: "note"}, `of image ${item}; a click on a map above chooses it`),
  );
  drawTray();
}
