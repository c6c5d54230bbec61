// The page.

function answer() {
  const texts = model.answers.flatMap((a) => [
    a.old && h("p", {class: "note"}, "Of an earlier run, this one didn't finish it:"),
    prose(a.text),
  ]);
  const notes = (early) =>
    model.notes
      .filter((t) => t.startsWith("> **Warning:**") === early)
      .map((t) => (t.startsWith("> ") ? h("div", {class: "warning"}, prose(t)) : prose(t)));
  const [first, rest] = [notes(true), notes(false)];
  if (!texts.length && !rest.length)
    texts.push(h("p", {}, "The folder has no answer in words: see its tables and figures."));
  return section("answer", "Answer", first, texts, rest);
}

function main() {
  const page = document.getElementById("page");
  const first = answer();
  const list = [first, changes(), leaderboard(), mapsSection(), curves(), tables(), figures()].filter(
    Boolean,
  );
  const order = new Map(sections.map(([id, title]) => [id, title]));
  const nav = h(
    "nav",
    {"aria-label": "parts of the page"},
    list.map((e) => h("a", {href: "#" + e.id}, order.get(e.id))),
  );
  const left =
    (model.left || []).length > 0 &&
    h(
      "ul",
      {class: "left"},
      model.left.map((t) => h("li", {}, t)),
    );
  page.before(h("a", {class: "skip", href: "#answer"}, "to the answer"));
  page.append(
    h(
      "header",
      {},
      h("h1", {}, model.title || model.name),
      h(
        "p",
        {class: "note"},
        model.name,
        model.madeBy.length ? "; made by " + model.madeBy.join("; ") : "",
      ),
    ),
    nav,
    left || "",
    ...list,
    live,
    h(
      "footer",
      {},
      h("p", {class: "keys"}, "Keys: n and p show the next and previous image, b blinks between two maps."),
      model.command ? h("p", {}, "How to reproduce: ", h("code", {}, model.command)) : "",
    ),
  );
  addEventListener("beforeprint", () => {
    for (const d of document.querySelectorAll("details")) {
      if (!d.open && d.querySelector("summary").textContent.match(/\((\d+) rows\)/)?.[1] <= 60) {
        d.open = true;
        d.dispatchEvent(new Event("toggle")); // the browser's own comes after the print
      }
    }
    for (const draw of waiting) draw();
  });
  document.documentElement.dataset.ready = "yes";
}

main();
