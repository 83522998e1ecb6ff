// The same drawing through every network. Asked only while the table is in view, once the drawing has rested.
const RESTED = 300; // ms: a stroke that follows at once comes first

const table = element.querySelector("tbody"), rows = [...table.rows];
let sheet = null, shown = null, inView = false, rest = 0;

function show(answers) {
  rows.forEach((row, i) => {
    const { lengths, figures, digit, sentence, picture, took } = answers[i] ?? {};
    const spectrum = row.querySelector(".spectrum"), canvas = row.querySelector("canvas");
    canvas.className = `screen digit digit-${digit === undefined ? "none" : digit % 10}`;
    paint(canvas, picture ? decode(picture) : null);
    [...spectrum.children].forEach((bar, k) => {
      bar.style.setProperty("--length", lengths?.[k] ?? 0);
      bar.classList.toggle("winner", k === digit);
    });
    spectrum.ariaLabel = figures ? `Lengths: ${figures.map((f, k) => `${props.names[k]} ${f}`).join(", ")}` : "No lengths yet";
    row.querySelector(".says").textContent = sentence ?? "";
    row.querySelector(".took").textContent = took ?? "";
  });
}

const ask = asker(table, ({ sheet }) => server.compare(sheet), {
  answered(answers, asked) {
    shown = asked.sheet;
    show(answers);
  },
  failed: () => show([]),
  wanted: (asked) => asked.sheet === sheet && inView,
});

function askSoon() {
  clearTimeout(rest);
  if (inView && sheet !== shown) rest = setTimeout(() => ask({ sheet }), RESTED);
}

function mark(network) {
  for (const row of rows) {
    row.querySelector("button").setAttribute("aria-pressed", row.dataset.network === network);
  }
}

for (const row of rows) {
  row.querySelector("button").addEventListener("click", () => {
    document.dispatchEvent(new CustomEvent("network", { detail: row.dataset.network }));
  });
}
document.addEventListener("network", ({ detail }) => mark(detail));
document.addEventListener("sheet", ({ detail }) => {
  sheet = detail;
  askSoon();
});
new IntersectionObserver(([{ isIntersecting }]) => {
  inView = isIntersecting;
  askSoon();
}).observe(table);
mark(props.network);
