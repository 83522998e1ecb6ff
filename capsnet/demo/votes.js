// What the lower capsules argue for the chosen digit in the chosen round of routing, where they look.
const canvas = element.querySelector("canvas"), brush = canvas.getContext("2d");
const status = element.querySelector("[role=status]"), steps = element.querySelector(".rounds");
const rows = [...element.querySelectorAll(".balance")], PIXEL = canvas.width / props.side;

let network = props.network, sheet = null;
const panel = element.querySelector(".votes");
let votes = null, digit = null, turn = 0, place = null; // what came, what of it is shown: digit, round, [row, column] or none
let chosen = null; // the digit that was asked for, of this drawing

const view = whileInView(panel, (asked) => ask(asked));
const ask = asker(panel, ({ sheet, network }) => server.votes({ network, ...plain(sheet) }), {
  answered(answer, asked) {
    if (!view.isNewest(asked)) return;
    view.finish(asked);
    show(answer.rounds ? answer : null, answer.why);
  },
  failed: (asked) => view.isNewest(asked) && show(null, { say: "silence.sentence" }),
  wanted: view.wants,
  patience: ({ sheet }) => patienceFor(sheet),
});

function show(answer, message) {
  const kept = votes && answer && turn < votes.rounds.length - 1; // an earlier round stays chosen while one draws on
  votes = answer;
  digit = answer && (chosen ?? answer.digit);
  if (!kept || turn >= answer.rounds.length) turn = answer ? answer.rounds.length - 1 : 0;
  place = null;
  const count = answer && answer.rounds.length > 1 ? answer.rounds.length : 0;
  if (steps.children.length !== count) steps.replaceChildren(...Array.from({ length: count }, step));
  words.say(element.querySelector(".about"), answer?.about);
  words.say(element.querySelector(".directions"), answer?.directions);
  draw();
  if (!answer) say(message);
}

const say = (message) => words.say(status, message);

function step(_, t) {
  const button = document.createElement("button");
  button.type = "button";
  const name = { say: "votes.round", n: t + 1 };
  words.say(button, t ? t + 1 : name);
  words.say(button, name, "aria-label");
  button.addEventListener("click", () => {
    turn = t;
    draw();
  });
  return button;
}

function draw() {
  [...steps.children].forEach((button, t) => button.setAttribute("aria-pressed", t === turn));
  balance();
  overlay();
  if (votes) say(describe());
}

// For and against each digit, all rounds to one scale.
function balance() {
  const widest = (side) => Math.max(...(votes?.rounds.flatMap((one) => one[side]) ?? [0]));
  const left = widest("against"), all = left + widest("for") || 1, now = votes?.rounds[turn];
  panel.style.setProperty("--axis", left / all);
  rows.forEach((row, k) => {
    row.style.setProperty("--for", (now?.for[k] ?? 0) / all);
    row.style.setProperty("--against", (now?.against[k] ?? 0) / all);
    row.querySelector(".value").textContent = now?.figures[k] ?? "";
    row.disabled = !votes;
    row.setAttribute("aria-pressed", k === digit);
    const sums = now && { for: now.for[k].toFixed(2), against: now.against[k].toFixed(2), figure: now.figures[k] };
    words.say(row, { say: now ? "votes.row" : "votes.row_none", name: row.dataset.name, ...sums }, "aria-label");
  });
}

// The drawing, and on it a dot for each place of the grid: filled for the digit, a ring against it.
function overlay() {
  canvas.className = `screen digit digit-${votes ? digit % 10 : "none"}`;
  canvas.tabIndex = votes ? 0 : -1;
  brush.clearRect(0, 0, canvas.width, canvas.height);
  words.say(canvas, { say: "votes.none" }, "aria-label");
  if (!votes) return;
  const ink = decode(votes.pixels), [side, stride] = votes.field;
  for (let i = 0; i < ink.length; i++) {
    brush.fillStyle = `rgb(255 255 255 / ${(0.45 * ink[i]) / 255})`;
    if (ink[i]) brush.fillRect((i % props.side) * PIXEL, Math.floor(i / props.side) * PIXEL, PIXEL, PIXEL);
  }
  const most = Math.max(...votes.rounds.flatMap(({ places }) => places.flat(2).map(Math.abs))) || 1;
  brush.fillStyle = brush.strokeStyle = getComputedStyle(canvas).color;
  here().forEach((values, row) =>
    values.forEach((value, column) => {
      const [x, y] = [column, row].map((at) => (stride * at + side / 2) * PIXEL);
      const radius = Math.min(stride, 4) * PIXEL * 0.62 * Math.sqrt(Math.abs(value) / most); // the area says how much
      brush.beginPath();
      if (value > 0) {
        brush.arc(x, y, radius, 0, 2 * Math.PI);
        brush.fill();
      } else if (radius > 2) {
        brush.lineWidth = 2;
        brush.arc(x, y, radius - 1, 0, 2 * Math.PI);
        brush.stroke();
      }
    })
  );
  if (place) {
    const [top, left] = place.map((at) => stride * at * PIXEL), width = side * PIXEL;
    brush.fillStyle = "rgb(0 0 0 / 0.55)"; // what is not seen from there goes dark
    brush.beginPath();
    brush.rect(0, 0, canvas.width, canvas.height);
    brush.rect(left, top, width, width);
    brush.fill("evenodd");
    brush.strokeStyle = "#fff";
    brush.lineWidth = 2;
    brush.strokeRect(left + 1, top + 1, width - 2, width - 2);
  }
  const [height, width] = size();
  words.say(canvas, { say: "votes.label", height, width, name: props.names[digit] }, "aria-label");
}

const here = () => votes.rounds[turn].places[digit];
const size = () => [here().length, here()[0].length];

function describe() {
  const name = props.names[digit], now = votes.rounds[turn];
  if (!place) {
    return { say: "votes.all", name, for: now.for[digit].toFixed(2), against: now.against[digit].toFixed(2) };
  }
  const value = here()[place[0]][place[1]], text = Math.abs(value).toFixed(2);
  const by = `${Number(text) && value < 0 ? "−" : "+"}${text}`, at = { row: place[0] + 1, column: place[1] + 1 };
  return { say: votes.each > 1 ? "votes.place" : "votes.place_one", ...at, count: votes.each, by, name };
}

function choose(next) {
  if (String(next) === String(place)) return;
  place = next;
  overlay();
  say(describe());
}

// The place whose dot is nearest, a little beyond the outermost too.
function at({ offsetX, offsetY }) {
  const [side, stride] = votes.field, [height, width] = size();
  const [column, row] = [offsetX, offsetY].map((v) => Math.round(((v / canvas.clientWidth) * props.side - side / 2) / stride));
  return row >= -1 && column >= -1 && row <= height && column <= width
    ? [Math.max(0, Math.min(height - 1, row)), Math.max(0, Math.min(width - 1, column))]
    : null;
}

const usable = () => votes && !panel.classList.contains("stale");
for (const kind of ["pointermove", "pointerdown"]) canvas.addEventListener(kind, (event) => usable() && choose(at(event)));
canvas.addEventListener("pointerleave", ({ pointerType }) => usable() && pointerType === "mouse" && choose(null));
canvas.addEventListener("keydown", (event) => {
  const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Escape: null }[event.key];
  if (!usable() || move === undefined) return;
  event.preventDefault();
  const [height, width] = size(), within = (v, count) => Math.max(0, Math.min(count - 1, v));
  choose(move && (place ? [within(place[0] + move[0], height), within(place[1] + move[1], width)] : [0, 0]));
});

function turnTo(k) {
  chosen = k;
  if (!votes) return;
  digit = k;
  draw();
}
rows.forEach((row, k) => row.addEventListener("click", () => turnTo(k)));
document.addEventListener("capsule", ({ detail }) => turnTo(detail));

function renew() {
  if (sheet && !votes && !isEmpty(sheet)) say({ say: "pad.reading_drawing" });
  view.turnTo(sheet && { sheet, network });
}
follow(network, (turned) => {
  ({ sheet, network } = { sheet, network, ...turned });
  chosen = null;
  renew();
});
show(null, { say: "votes.unvoted" });
