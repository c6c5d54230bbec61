// Elements. Texts become text nodes, so that no name of an image, class or method is ever markup.

function add(e, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
    else if (value === true) e.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) e.setAttribute(name, value);
  }
  for (const child of children.flat(2)) {
    if (child !== null && child !== undefined && child !== false) e.append(child);
  }
  return e;
}

const h = (tag, attributes, ...children) => add(document.createElement(tag), attributes, children);

const svg = (tag, attributes, ...children) =>
  add(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

let serial = 0;
const newID = () => "e" + ++serial;

// A labelled choice; options are [value, text].
function choice(label, options, value, change) {
  const id = newID();
  const select = h(
    "select",
    {id, "data-key": label, onchange: () => change(select.value)},
    options.map(([v, text]) => h("option", {value: v, selected: v === value}, text)),
  );
  return h("span", {class: "control"}, h("label", {for: id}, label), select);
}

// Buttons of which one is pressed.
function modes(label, options, value, change) {
  const group = h("span", {class: "control modes", role: "group", "aria-label": label});
  for (const [v, text, key] of options) {
    group.append(
      h(
        "button",
        {
          type: "button",
          "aria-pressed": String(v === value),
          "aria-keyshortcuts": key,
          "data-key": label + " " + v,
          "data-value": v,
          onclick: () => {
            for (const b of group.children) b.setAttribute("aria-pressed", String(b.dataset.value === v));
            change(v);
          },
        },
        text,
      ),
    );
  }
  return group;
}

// A slider over 0 to 100 %.
function range(label, percent, change) {
  const id = newID();
  const input = h("input", {
    type: "range",
    id,
    "data-key": label,
    min: 0,
    max: 100,
    step: 1,
    value: percent,
    oninput: () => {
      text.textContent = input.value + " %";
      change(Number(input.value));
    },
  });
  const text = h("output", {for: id}, percent + " %");
  return h("span", {class: "control range"}, h("label", {for: id}, label), input, text);
}

// A table that scrolls sideways, by keyboard too. Print, which can't scroll, has smaller letters for many columns.
function scrolling(label, table) {
  table.style.setProperty("--columns", table.rows[table.rows.length - 1].cells.length);
  return sideways(label + ", as a table", table);
}

const sideways = (label, child) =>
  h("div", {class: "scroll", role: "region", "aria-label": label, tabindex: "0"}, child);

// Replaces the children of an element. If one of them had the focus, the new child with its key gets it or, without
// such a child, the element that scrolls.
function fill(e, ...children) {
  const key = e.contains(document.activeElement) && document.activeElement.dataset.key;
  e.replaceChildren(...children.flat(2).filter((c) => c !== null && c !== undefined && c !== false));
  if (key) {
    const again =
      [...e.querySelectorAll("[data-key]")].find((x) => x.dataset.key === key) ||
      e.querySelector("[tabindex]");
    if (again) again.focus({preventScroll: true});
  }
  return e;
}

// The button below the first entries of a list. show draws the whole list.
const showAll = (length, most, what, show) =>
  length > most &&
  h(
    "p",
    {},
    h("button", {type: "button", "data-key": "show all", onclick: show}, `show all ${length} ${what}`),
  );

// Our own texts have little Markdown: bold, code and escaped characters.
function prose(text) {
  const out = [];
  for (const block of text.split(/\n{2,}/)) {
    const lines = block.split("\n");
    if (lines.every((l) => /^\s*- /.test(l))) {
      out.push(
        h(
          "ul",
          {},
          lines.map((l) => h("li", {}, inline(l.replace(/^\s*- /, "")))),
        ),
      );
    } else if (lines.length > 2 && /^\|[ :|-]+\|$/.test(lines[1])) {
      out.push(h("pre", {}, block));
    } else {
      out.push(h("p", {}, inline(block.replace(/^> /gm, ""))));
    }
  }
  return out;
}

function inline(text) {
  const out = [];
  const token = /\*\*(.+?)\*\*|(`+)(.+?)\2|\[([^\]]*)\]\([^)]*\)|\\([!-/:-@[-`{-~])|&(lt|gt|amp);/g;
  let at = 0;
  for (const m of text.matchAll(token)) {
    out.push(text.slice(at, m.index));
    at = m.index + m[0].length;
    if (m[1]) out.push(h("strong", {}, inline(m[1])));
    else if (m[3]) out.push(h("code", {}, m[3]));
    else if (m[4] !== undefined) out.push(m[4]);
    else out.push(m[5] || {lt: "<", gt: ">", amp: "&"}[m[6]]);
  }
  out.push(text.slice(at));
  return out;
}

// Scrolls to a heading and gives it the focus.
function goTo(id) {
  const title = document.getElementById(id);
  title.tabIndex = -1;
  title.scrollIntoView();
  title.focus({preventScroll: true});
}
