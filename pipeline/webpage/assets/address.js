// The view in the address: what was chosen stands behind its #, so that a copy of the address shows the same.

const parts = []; // of the view, by name

// A part of the view has fields: texts, numbers, booleans or lists. get returns them, and set gets those of an address,
// of which it takes what the page has. The fields at first are left out of addresses.
function remember(name, get, set) {
  parts.push({name, get, set, first: null});
}

const written = (x) => (typeof x === "string" ? x : JSON.stringify(x));

// The address of the view: the section where something was chosen last, and each field that isn't as at first.
function addressOf(section) {
  const fields = parts.flatMap(({name, get, first}) =>
    Object.entries(get())
      .filter(([k, v]) => written(v) !== written(first[k]))
      .map(([k, v]) => `&${encodeURIComponent(name + "." + k)}=${encodeURIComponent(written(v))}`),
  );
  return fields.length || section ? `#${section}${fields.join("")}` : "";
}

const sectionOf = (hash) => hash.replace(/^#/, "").split("&")[0];

function writeAddress(section) {
  const hash = addressOf(section || sectionOf(location.hash));
  if (hash === location.hash) return;
  try {
    history.replaceState(null, "", hash || location.pathname);
  } catch {
    // A frame may forbid it: the view isn't in its address then.
  }
}

// Shows the view of the address.
function readAddress() {
  const [section, ...fields] = location.hash.replace(/^#/, "").split("&");
  const given = new Map();
  for (const f of fields) {
    try {
      const [name, value] = f.split("=").map(decodeURIComponent);
      given.set(name, value);
    } catch {
      // A field that was cut off says nothing.
    }
  }
  for (const {name, set, first} of parts) {
    const found = {};
    for (const [k, was] of Object.entries(first)) {
      const text = given.get(name + "." + k);
      if (text === undefined) continue;
      try {
        const value = typeof was === "string" ? text : JSON.parse(text);
        if (typeof value === typeof was && Array.isArray(value) === Array.isArray(was) && value !== null)
          found[k] = value;
      } catch {
        // What isn't written as the page does it is left as it is.
      }
    }
    if (Object.keys(found).length) set(found);
  }
  const e = fields.length && sections.find(([id]) => id === section);
  if (e) e[2].scrollIntoView();
}

function watchAddress() {
  for (const p of parts) p.first = p.get();
  let timer = 0;
  const later = (event) => {
    const section = event.target.closest && event.target.closest("section[id]");
    clearTimeout(timer);
    timer = setTimeout(() => writeAddress(section && section.id), 100);
  };
  for (const type of ["click", "change", "input", "keyup"]) document.addEventListener(type, later);
  addEventListener("hashchange", () => {
    if (location.hash.includes("&")) readAddress();
  });
}
