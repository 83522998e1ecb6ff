// The opening: until the first touch a pen writes a stored drawing, and the page tells step by step what happens. It
// goes through the page as the DOM event "opening", with the name of the step; null is its end.
const STEPS = [ // what is told, beside which panel, and for how long it is at least; the last one stays
  ["write", "#pad", 0],
  ["see", "#seen", 4200],
  ["answer", "#lengths", 4800],
  ["bend", "#tweak", 5600],
  ["yours", "#pad", 0],
];
const SILENT_KEYS = /^(Tab|Shift|Control|Alt|Meta|CapsLock|Page(Up|Down)|F\d+)$/; // they look around, no more
const MOVING = !matchMedia("(prefers-reduced-motion: reduce)").matches;
const FIRST = 900, PAUSE = 500; // ms before the pen comes, and after it has gone

const nib = element.querySelector(".nib");
const opening = { step: null, frame: 0, next: 0 }, over = new AbortController();

function turnToStep(number) {
  const [step, place, time] = STEPS[number];
  opening.step = step;
  mark(step, place);
  document.dispatchEvent(new CustomEvent("opening", { detail: step }));
  if (step === "write") write();
  else if (number + 1 < STEPS.length) opening.next = setTimeout(() => turnToStep(number + 1), time);
}

// Tells one step, at the top and by a frame around a panel; without one, neither.
function mark(step, place) {
  document.querySelectorAll("#top [data-step]").forEach((one) => one.classList.toggle("told", one.dataset.step === (step ?? "none")));
  document.querySelectorAll(".told-of").forEach((panel) => panel.classList.remove("told-of"));
  if (place) document.querySelector(`${place} .panel`).classList.add("told-of");
}

// The pen, at the pace at which it was stored.
function write() {
  const written = props.opening.map(() => []), last = props.opening.at(-1).at(-1);
  const began = performance.now() + FIRST;
  sheet = { ...blank(), isExample: true };
  const tick = (now) => {
    const time = MOVING ? now - began : last[2];
    props.opening.forEach((points, i) => {
      for (const [x, y, at] of points.slice(written[i].length)) if (at <= time) written[i].push([x, y]);
    });
    const begun = written.filter((points) => points.length);
    if (begun.length > sheet.strokes.length) stroke = begun.at(-1);
    sheet = { ...sheet, strokes: begun };
    follow(time);
    if (time < last[2]) {
      if (stroke) sendSoon();
      opening.frame = requestAnimationFrame(tick);
    } else {
      stroke = null;
      send();
      opening.next = setTimeout(() => turnToStep(1), PAUSE);
    }
  };
  opening.frame = requestAnimationFrame(tick);
}

// Where the pen is between two stored moments, in the air between two strokes.
function follow(time) {
  const every = props.opening.flat(), next = every.findIndex(([, , at]) => at > time);
  if (!MOVING || next < 0) return hold(0, 0, 0);
  const [u, v, to] = every[next], [x, y, from] = every[next - 1] ?? [u + 50, v - 40, -FIRST];
  const share = (time - from) / (to - from);
  hold(x + (u - x) * share, y + (v - y) * share, 1);
}

function hold(x, y, opacity) {
  Object.assign(nib.style, { left: `${(100 * x) / UNITS}%`, top: `${(100 * y) / UNITS}%`, opacity });
}

// The example is whole, and what comes next is the person's. A wiped one leaves nothing behind.
function endOpening(isWiped) {
  if (over.signal.aborted) return;
  over.abort(); // nobody listens any more
  cancelAnimationFrame(opening.frame);
  clearTimeout(opening.next);
  nib.remove();
  mark(null, null);
  document.dispatchEvent(new CustomEvent("opening", { detail: null }));
  if (!opening.step) return;
  const isWhole = !stroke && sheet.strokes?.length === props.opening.length;
  stroke = null;
  if (isWiped) sheet = blank();
  else if (!isWhole) sheet = { ...blank(), isExample: true, strokes: props.opening.map((points) => points.map(([x, y]) => [x, y])) };
  if (isWiped || !isWhole) send();
}

function touched(event) {
  const isKey = event.type === "keydown";
  if (event.target.closest?.("#top") || (isKey && SILENT_KEYS.test(event.key))) return;
  endOpening(event.target === canvas || event.key === "Escape");
}
for (const kind of ["pointerdown", "keydown"]) window.addEventListener(kind, touched, { capture: true, signal: over.signal });
for (const kind of ["take", "network"]) document.addEventListener(kind, () => endOpening(false), { capture: true, signal: over.signal });
document.addEventListener("ready", () => {
  if (caption.textContent || !isBlank()) endOpening(false);
  else turnToStep(0);
}, { signal: over.signal });
