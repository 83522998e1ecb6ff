// The drawing under more and more of a change, and curves of what is read in it. The slider asks nobody.
const panel = element.querySelector(".laboratory"), status = element.querySelector("[role=status]");
const canvas = element.querySelector("canvas"), slider = element.querySelector("input");
const kinds = [...element.querySelectorAll("[data-kind]")], figures = [...element.querySelectorAll("figure")];
const WIDE = 300, HIGH = 130, MARGIN = 6; // of a diagram

let network = props.network, sheet = null, distortion = kinds[0].dataset.kind;
let found = null, pictures = null;

const view = whileInView(panel, (asked) => ask(asked));
const ask = asker(panel, ({ sheet, network, distortion }) => server.experiment({ network, distortion, ...plain(sheet) }), {
  answered(answer, asked) {
    if (!view.isNewest(asked)) return;
    view.finish(asked);
    show(answer.amounts ? answer : null, answer.why);
  },
  failed: (asked) => view.isNewest(asked) && show(null, { say: "silence.sentence" }),
  wanted: view.wants,
  patience: ({ sheet }) => patienceFor(sheet),
});

function show(answer, message) {
  found = answer;
  pictures = answer && decode(answer.pictures);
  slider.disabled = !answer;
  slider.max = answer ? answer.amounts.length - 1 : 0;
  slider.value = answer?.start ?? 0;
  const rail = slider.parentElement.style;
  rail.setProperty("--start", answer ? answer.start / (answer.amounts.length - 1) : 0.5);
  rail.setProperty("--span", 0);
  slider.closest(".specimen").className = `specimen digit digit-${answer ? answer.digit % 10 : "none"}`;
  canvas.className = `screen digit digit-${answer ? answer.digit % 10 : "none"}`;
  figures[1].hidden = Boolean(answer && !answer.plain);
  diagram(figures[0], answer?.lengths, [0, 1], (k) => `digit digit-${k % 10}`);
  diagram(figures[1], answer?.plain, [0, 1], (k) => `digit digit-${k % 10}`);
  const widest = Math.max(...(answer?.pose.flat().map(Math.abs) ?? [1])) || 1;
  const most = answer ? [answer.moved.one, answer.moved.other].map((n) => n - 1) : []; // the numbers that move most
  const colour = `digit digit-${answer ? answer.digit % 10 : "none"}`;
  diagram(figures[2], answer?.pose, [-widest, widest], (k) => (most.includes(k) ? colour : `${colour} faint`));
  label(figures[2], most, answer?.pose, widest, colour);
  words.say(figures[2].querySelector(".says"), answer?.moved);
  words.say(status, answer ? "" : message);
  turn();
}

// A line for each number, its values from left to right.
function diagram(figure, values, [low, high], named) {
  const drawing = figure.querySelector("svg"), last = (values?.length ?? 2) - 1;
  const x = (i) => (i / last) * WIDE, y = (v) => HIGH - MARGIN - ((v - low) / (high - low)) * (HIGH - 2 * MARGIN);
  const line = (name, points) => `<polyline class="${name}" points="${points.map((p) => p.map((v) => v.toFixed(1))).join(" ")}"/>`;
  const rules = (low < 0 ? [0] : [0, 0.5, 1]).map((v) => line("rule", [[0, y(v)], [WIDE, y(v)]]));
  const curves = (values?.[0] ?? []).map((_, k) => line(`curve ${named(k)}`, values.map((row, i) => [x(i), y(row[k])])));
  for (const one of figure.querySelectorAll(".scale-y, .mark")) one.remove();
  for (const [end, place] of [[high, "top"], [low, "bottom"]]) {
    const tick = Object.assign(document.createElement("span"), { className: "scale-y", textContent: values ? number(end) : "" });
    tick.style[place] = "8px";
    drawing.after(tick);
  }
  const ends = values ? [found.amounts[0], found.amounts.at(-1)].map(number) : [];
  figure.querySelector(".scale-x").replaceChildren(...ends.map((text) => Object.assign(document.createElement("span"), { textContent: text })));
  drawing.innerHTML = [...rules, line("now", [[0, 0], [0, HIGH]]), ...curves].join("");
}

// Which pose numbers the two strong lines are, where they are farthest apart.
function label(figure, chosen, pose, widest, colour) {
  if (!pose) return;
  const [one, other] = chosen, apart = pose.map((row) => Math.abs(row[one] - row[other])), at = apart.indexOf(Math.max(...apart));
  for (const k of chosen) {
    const mark = Object.assign(document.createElement("span"), { className: `mark ${colour}`, textContent: k + 1 });
    mark.style.top = `${(100 * (HIGH - MARGIN - ((pose[at][k] / widest + 1) / 2) * (HIGH - 2 * MARGIN))) / HIGH}%`;
    mark.style.left = `${(100 * at) / (pose.length - 1)}%`;
    figure.querySelector("svg").after(mark);
  }
}

// Everything that follows the slider.
function turn() {
  const at = Number(slider.value), share = found ? at / (found.amounts.length - 1) : 0;
  paint(canvas, pictures && pictures.slice(at * SIDE * SIDE, (at + 1) * SIDE * SIDE));
  for (const figure of figures) {
    const now = figure.querySelector(".now");
    now.style.visibility = found ? "visible" : "hidden";
    now.setAttribute("transform", `translate(${share * WIDE} 0)`);
  }
  const amount = found && { say: "laboratory.by", amount: number(found.amounts[at]), unit: { say: `laboratory.unit.${distortion}` } };
  words.say(element.querySelector(".amount"), amount);
  words.say(slider, amount, "aria-valuetext");
  words.say(canvas, found ? { say: "laboratory.changed", change: amount } : { say: "laboratory.none" }, "aria-label");
  [found?.lengths, found?.plain].forEach((lengths, i) => {
    words.say(figures[i].querySelector(".says"), lengths ? { say: "laboratory.says", now: reads(lengths[at], i || found.known[at]), told: found.told[i] } : "");
  });
}

const number = (amount) => String(Math.round(amount * 100) / 100).replace("-", "−");

// What one network reads at one amount; that an image is no digit only the capsules can tell.
function reads(lengths, isKnown) {
  const best = lengths.indexOf(Math.max(...lengths));
  return { say: isKnown ? "laboratory.reads" : "laboratory.unknown", name: props.names[best], length: lengths[best].toFixed(2) };
}

function mark() {
  for (const button of kinds) button.setAttribute("aria-pressed", button.dataset.kind === distortion);
}

function renew() {
  if (sheet && isEmpty(sheet)) show(null, { say: "laboratory.empty" });
  else if (sheet && !found) words.say(status, { say: "pad.reading_drawing" });
  view.turnTo(sheet && { sheet, network, distortion });
}

for (const button of kinds) {
  button.addEventListener("click", () => {
    distortion = button.dataset.kind;
    mark();
    renew();
  });
}
slider.addEventListener("input", turn);
follow(network, (turned) => {
  ({ sheet, network } = { sheet, network, ...turned });
  renew();
});
mark();
show(null, { say: "laboratory.empty" });
