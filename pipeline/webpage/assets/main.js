// The page.

function main() {
  const page = document.getElementById("page");
  const scores = leaderboard(); // the answer's pictures are of its cases
  const list = [answer(), changes(), scores, mapsSection(), curves(), tables(), figures()].filter(Boolean);
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
    const more = document.getElementById("more");
    if (more) more.open = true;
    for (const d of document.querySelectorAll("details")) {
      if (!d.open && d.querySelector("summary").textContent.match(/\((\d+) rows?\)/)?.[1] <= 60) {
        d.open = true;
        d.dispatchEvent(new Event("toggle")); // the browser's own comes after the print
      }
    }
    for (const draw of waiting) draw();
  });
}

main();
