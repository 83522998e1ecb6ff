// Rows are numbers of the pose, columns steps of one; a picture that is chosen goes to the sliders.
const panel = element.querySelector(".panel"), status = element.querySelector("[role=status]");
const canvas = element.querySelector("canvas"), mark = element.querySelector(".mark");
const look = element.querySelector("[data-do=look]");
const does = [...element.querySelectorAll(".does")];
const rows = does.length, middle = (props.steps - 1) / 2;

let base = null, cell = [0, middle]; // what the pictures are steps from: {network, digit, pose, ranges, does}; row and column

const view = whileInView(canvas, (asked) => ask(asked));
const ask = asker(canvas, ({ network, digit, pose }) => server.perturb([network, digit, pose]), {
  answered(pixels, asked) {
    if (!view.isNewest(asked)) return;
    view.finish(asked);
    panel.className = `panel digit digit-${asked.digit % 10}`;
    paint(canvas, decode(pixels));
    does.forEach((place, i) => words.say(place, asked.does[i]));
    const about = { name: props.names[asked.digit], rows, steps: props.steps };
    words.say(canvas, { say: "perturbations.label", ...about }, "aria-label");
    words.say(status, null);
  },
  failed(asked) {
    if (!view.isNewest(asked)) return;
    wipe();
    words.say(status, { say: "silence.sentence" });
  },
  wanted: view.wants,
});

function wipe() {
  panel.className = "panel digit digit-none";
  words.say(status, null);
  paint(canvas, null);
  does.forEach((place) => words.say(place, null));
  mark.hidden = true;
  words.say(canvas, { say: "perturbations.none" }, "aria-label");
}

// Puts the mark on a picture, and says which it is.
function point(row, column) {
  cell = [row, column];
  mark.style.setProperty("--row", row);
  mark.style.setProperty("--column", column);
  mark.hidden = false;
  const by = Math.round((100 * (column - middle)) / (props.steps - 1));
  const about = { n: row + 1, by: `${by > 0 ? "+" : "−"}${Math.abs(by)}`, does: base.does[row] };
  if (!by) words.say(status, { say: "perturbations.own" });
  else words.say(status, { say: about.does.length ? "perturbations.cell_does" : "perturbations.cell", ...about });
}

function take() {
  const [row, column] = cell, { network, digit, ranges: { [row]: [low, high] } } = base, pose = [...base.pose];
  pose[row] += ((column - middle) / (props.steps - 1)) * (high - low);
  document.dispatchEvent(new CustomEvent("bend", { detail: { network, digit, pose } }));
  look.hidden = false;
}
look.addEventListener("click", showSliders);

canvas.addEventListener("click", ({ offsetX, offsetY }) => {
  if (!base || canvas.classList.contains("stale")) return;
  const at = (offset, size, count) => Math.max(0, Math.min(count - 1, Math.floor((offset / size) * count)));
  point(at(offsetY, canvas.clientHeight, rows), at(offsetX, canvas.clientWidth, props.steps));
  take();
});
canvas.addEventListener("keydown", (event) => {
  const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] ?? [0, 0];
  const chosen = event.key === "Enter" || event.key === " ";
  if (!base || canvas.classList.contains("stale") || !(chosen || down || right)) return;
  event.preventDefault();
  const [row, column] = cell, within = (at, count) => Math.max(0, Math.min(count - 1, at));
  point(within(row + down, rows), within(column + right, props.steps));
  if (chosen) take();
});

// A capsule to bend, or none.
document.addEventListener("chosen", ({ detail }) => {
  base = detail;
  mark.hidden = look.hidden = true;
  cell = [0, middle];
  view.turnTo(base);
  if (!base) {
    wipe();
    view.finish(null);
  }
});
wipe();
