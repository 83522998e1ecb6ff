// The same drawing through every network.
const table = element.querySelector("tbody"), rows = [...table.rows], status = element.querySelector("[role=status]");

let isBare = true; // no answers are shown

function show(answers, message) {
  isBare = !answers.length;
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
    const read = figures?.map((figure, k) => `${props.names[k]} ${figure}`);
    words.say(spectrum, read ? { say: "compare.figures", figures: read } : { say: "compare.no_lengths" }, "aria-label");
    words.say(row.querySelector(".says"), sentence);
    row.querySelector(".took").textContent = took ?? "";
  });
  words.say(status, message);
}

const view = whileInView(table, (asked) => ask(asked));
const ask = asker(table, (asked) => server.compare(plain(asked)), {
  answered(answers, asked) {
    if (!view.isNewest(asked)) return;
    view.finish(asked);
    show(answers, answers.length ? null : { say: "compare.empty" });
  },
  failed: (asked) => view.isNewest(asked) && show([], { say: "silence.sentence" }),
  wanted: view.wants,
  patience: patienceFor,
});

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
  if (detail && isBare && !isEmpty(detail)) words.say(status, { say: "pad.reading_drawing" });
  view.turnTo(detail);
});
mark(props.network);
show([], { say: "compare.empty" });
