// The same drawing through every network. Asked only while the table is in view, once the drawing has rested.
const RESTED = 300; // ms

const table = element.querySelector("tbody"), rows = [...table.rows], status = element.querySelector("[role=status]");
let sheet = null, shown = null, inView = false, rest = 0;

function show(answers, words) {
  const canvases = rows.map((row) => row.querySelector("canvas"));
  canvases.forEach((canvas, i) => {
    canvas.className = `screen digit digit-${answers[i] ? answers[i].digit % 10 : "none"}`;
  });
  canvases.forEach((canvas, i) => paint(canvas, answers[i] ? decode(answers[i].picture) : null));
  rows.forEach((row, i) => {
    const { lengths, figures, digit, sentence, took } = answers[i] ?? {}, spectrum = row.querySelector(".spectrum");
    [...spectrum.children].forEach((bar, k) => {
      bar.style.setProperty("--length", lengths?.[k] ?? 0);
      bar.classList.toggle("winner", k === digit);
    });
    spectrum.ariaLabel = figures ? `Lengths: ${figures.map((f, k) => `${props.names[k]} ${f}`).join(", ")}` : "No lengths yet";
    row.querySelector(".says").textContent = sentence ?? "";
    row.querySelector(".took").textContent = took ?? "";
  });
  status.textContent = words;
}

const ask = asker(table, ({ asked }) => server.compare(plain(asked)), {
  answered(answers, { asked }) {
    if (asked !== sheet) return;
    shown = asked;
    table.classList.remove("stale");
    show(answers, answers.length ? "" : props.empty);
  },
  failed: () => show([], props.silence),
  wanted: ({ asked }) => asked === sheet && inView,
  patience: ({ asked }) => patienceFor(asked),
});

function askSoon() {
  clearTimeout(rest);
  if (inView && sheet && sheet !== shown) rest = setTimeout(() => ask({ asked: sheet }), RESTED);
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
  table.classList.toggle("stale", sheet !== shown);
  askSoon();
});
new IntersectionObserver((changes) => {
  inView = changes.at(-1).isIntersecting;
  askSoon();
}).observe(table);
mark(props.network);
show([], props.empty);
