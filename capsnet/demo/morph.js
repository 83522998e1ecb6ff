// Sheet A is kept here, B is the one on the pad. All pictures from A to B come at once, so that neither the slider nor playing asks again.
const LEG = 1800; // ms that playing takes from one end to the other

const place = element.querySelector(".way"), status = element.querySelector("[role=status]");
const stage = element.querySelector(".between"), figures = [".a", ".b"].map((name) => place.querySelector(name));
const [redrawn, styled] = element.querySelectorAll(".style canvas"), says = element.querySelector(".says");
const slider = element.querySelector("[type=range]"), rail = element.querySelector(".rail"), last = props.steps - 1;
const button = (name) => element.querySelector(`[data-do=${name}]`);

let network = props.network, sheet = null, a = null, source = null; // on the pad, or null during a stroke; what was kept, and of which sheet
let pair = null, playing = 0; // what came, with what was `asked`; the next frame's number

const patience = ({ a, b }) => patienceFor(a) + patienceFor(b);
const view = whileInView(place, (asked) => ask(asked));
const ask = asker(place, ({ network, a, b }) => server.morph({ network, a, b: plain(b) }), {
  answered(answer, asked) {
    if (!view.isNewest(asked)) return;
    view.finish(asked);
    if (answer.why) return show(null, answer.why);
    portray(0, answer);
    if (asked.b === source) show(null, { say: "morph.kept" });
    else show({ ...answer, asked, frames: decode(answer.frames) }, answer.says);
  },
  failed: (asked) => view.isNewest(asked) && show(null, { say: "silence.sentence" }),
  wanted: view.wants,
  patience,
});

const say = (message) => words.say(status, message);

const picture = (pictures, number) => pictures.subarray(number * SIDE * SIDE, (number + 1) * SIDE * SIDE);
const nameOf = (which) => props.names[pair.digits[which]];

function show(answer, message) {
  stop();
  pair = answer;
  const digit = pair?.digits[1], name = props.names[digit];
  element.querySelectorAll(".style figure").forEach((figure) => tint(figure, digit));
  portray(1, pair);
  paint(redrawn, pair && picture(pair.frames, last));
  paint(styled, pair && decode(pair.style.picture));
  words.say(redrawn, { say: pair ? "morph.redrawn_label" : "tweak.none", name }, "aria-label");
  words.say(styled, { say: pair ? "morph.styled_label" : "tweak.none", name }, "aria-label");
  words.say(says, pair?.style.says);
  for (const name of ["play", "film"]) button(name).disabled = !pair;
  button("bend").disabled = !pair?.style.found;
  slider.disabled = !pair;
  draw();
  say(message);
}

function tint(figure, digit) {
  figure.className = `${figure.classList[0]} digit digit-${digit === undefined ? "none" : digit % 10}`;
}

// A or B as the network sees it, and what it reads there; without an answer there is none.
function portray(which, answer) {
  const figure = figures[which], canvas = figure.querySelector("canvas"), letter = "AB"[which];
  const digit = answer?.digits[which], name = props.names[digit];
  tint(figure, digit);
  paint(canvas, answer ? picture(decode(answer.seen), which) : null);
  words.say(canvas, { say: answer ? "morph.as_seen" : "morph.undrawn", letter }, "aria-label");
  words.say(figure.querySelector("figcaption"), answer ? { say: answer.known[which] ? "morph.read" : "morph.unknown", letter, name } : letter);
}

// ---- between the two

function draw() {
  const share = Number(slider.value) / last;
  rail.style.setProperty("--span", share);
  const [from, to] = figures.map((figure) => getComputedStyle(figure.querySelector("canvas")).color);
  stage.style.color = `color-mix(in oklab, ${from}, ${to} ${100 * share}%)`;
  paint(stage, pair && picture(pair.frames, Number(slider.value)));
  const ends = pair && { one: nameOf(0), other: nameOf(1) };
  words.say(stage, { say: pair ? "morph.between" : "tweak.none", ...ends }, "aria-label");
  words.say(slider, pair && { say: "morph.share", share: Math.round(100 * share), ...ends }, "aria-valuetext");
}

// There and back, from where the slider stands, until somebody stops it.
function play() {
  let began = null;
  const tick = (now) => {
    began ??= now - (LEG * slider.value) / last;
    const way = ((now - began) / LEG) % 2, frame = Math.round(last * Math.min(way, 2 - way));
    playing = requestAnimationFrame(tick);
    if (frame === Number(slider.value)) return;
    slider.value = frame;
    draw();
  };
  playing = requestAnimationFrame(tick);
  words.say(button("play"), { say: "morph.stop" });
}

function stop() {
  if (!playing) return;
  cancelAnimationFrame(playing);
  playing = 0;
  words.say(button("play"), { say: "morph.play" });
}

for (const kind of ["input", "pointerdown", "keydown"]) slider.addEventListener(kind, stop);
slider.addEventListener("input", draw);
button("play").addEventListener("click", () => (playing ? stop() : play()));
new IntersectionObserver((changes) => changes.at(-1).isIntersecting || stop()).observe(stage);

const film = asker(button("film"), ({ network, a, b }) => server.film({ network, a, b: plain(b) }), {
  answered({ why, name, gif }) {
    if (why) return say(why);
    save(new Blob([decode(gif)], { type: "image/gif" }), name);
    say({ say: "morph.saved", name });
  },
  failed: () => say({ say: "silence.sentence" }),
  patience,
});
button("film").addEventListener("click", () => film(pair.asked));

// ---- the style

button("bend").addEventListener("click", () => {
  if (place.classList.contains("stale")) return;
  const { asked, digits, style } = pair;
  document.dispatchEvent(new CustomEvent("bend", { detail: { network: asked.network, digit: digits[1], pose: style.pose } }));
  say({ say: "morph.taken" });
  showSliders();
});

// ---- the two sheets

function renew() {
  stop();
  const drawn = sheet && !isEmpty(sheet);
  view.turnTo(a && drawn ? { network, a, b: sheet } : null);
  if (!sheet) return;
  button("keep").disabled = !drawn;
  if (a && drawn) return;
  view.finish(null);
  show(null, { say: a ? "morph.kept" : drawn ? "morph.keep" : "morph.unkept" });
}

button("keep").addEventListener("click", () => {
  if (!sheet) return;
  source = sheet;
  a = structuredClone(plain(sheet)); // the pad thins out strokes that are on its later sheets, too
  portray(0, null);
  renew();
});
follow(network, (turned) => {
  ({ sheet, network } = { sheet, network, ...turned });
  renew();
});
slider.max = last;
slider.value = last / 2;
show(null, { say: "morph.unkept" });
