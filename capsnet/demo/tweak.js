// The sliders and their picture, which goes with its pose through the page as the DOM event "bent". "chosen" tells which capsule is bent, from which pose; null is none. `start` is the drawing's own pose, `pose` where the sliders stand; the picture of their
// last position always comes last.
const KEY_STEP = 0.01;
const ARROWS = { ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1 };

const panel = element.querySelector(".panel"), note = element.querySelector(".note");
const [bent, own] = element.querySelectorAll("figure canvas"), caption = element.querySelector(".bent figcaption");
const resetAll = element.querySelector("[data-do=reset]");
const rows = [...element.querySelectorAll(".slider")].map((row) => ({
  range: row.querySelector("[type=range]"),
  number: row.querySelector("[type=number]"),
  back: row.querySelector(".back"),
  rail: row.querySelector(".rail"),
  remark: row.querySelector("output"),
  does: row.querySelector(".does"),
}));

// Each moves one property alone, through all numbers of the pose.
const moves = [...element.querySelectorAll(".move")].map((row) => ({
  row,
  name: row.dataset.property,
  range: row.querySelector("[type=range]"),
  back: row.querySelector(".back"),
  rail: row.querySelector(".rail"),
}));

let grip = null; // what is being moved alone: {name, pose, from, value}, the pose and the value it is moved from
let drawing = null, digit = null, start = [], pose = [], limits = [], remark = rows[0].remark;

const round = (value) => Math.round(value * 1000) / 1000;
const same = (one, other) => one.every((value, i) => value === other[i]);
const network = () => props.networks[drawing.network];
const ownPicture = () => decode(drawing.pictures).subarray(digit * SIDE * SIDE, (digit + 1) * SIDE * SIDE);

// ---- a new drawing, or another of its capsules

function take(answer) {
  drawing = answer.poses ? answer : null;
  choose(drawing ? drawing.digit : null);
}

function choose(next) {
  digit = next;
  const idle = digit === null, name = props.names[digit];
  panel.className = `panel digit digit-${idle ? "none" : digit % 10}`;
  words.say(element.querySelector("h2"), idle ? { say: "tweak.title" } : { say: "tweak.title_of", name });
  words.say(note, idle && { say: "tweak.note" });
  words.say(bent, { say: idle ? "tweak.none" : "tweak.picture_label", name }, "aria-label");
  words.say(own, { say: idle ? "tweak.none" : "tweak.own_label", name }, "aria-label");
  start = idle ? rows.map(() => 0) : drawing.poses[digit];
  rows.forEach(({ does, range }, i) => {
    const said = idle ? [] : network().does[digit][i], n = i + 1;
    words.say(does, said);
    words.say(range, said.length ? { say: "tweak.number_does", n, does: said } : { say: "tweak.number", n }, "aria-label");
  });
  paint(own, idle ? null : ownPicture());
  reset();
  const detail = idle ? null : { network: drawing.network, digit, pose: start, ranges: network().ranges[digit], does: network().does[digit] };
  document.dispatchEvent(new CustomEvent("chosen", { detail }));
}

// ---- sliders

// As the drawing has it.
function reset() {
  pose = [...start];
  limits = start.map((value, i) => {
    const [low, high] = digit === null ? [-1, 1] : network().ranges[digit][i];
    return [Math.min(low, value), Math.max(high, value)];
  });
  grip = null;
  showAll();
  remarkOn(0, null);
  redraw();
}

function showAll() {
  rows.forEach((_, i) => showRow(i));
  moves.forEach(showMove);
}

// A range between those limits, and on its rail the way from where it began.
function slide({ range, rail }, [low, high], from, value) {
  const share = (v) => Math.max(0, Math.min(1, (v - low) / (high - low || 1)));
  range.disabled = digit === null;
  [range.min, range.max, range.value] = [low, high, value];
  rail.style.setProperty("--start", share(from));
  rail.style.setProperty("--from", Math.min(share(from), share(value)));
  rail.style.setProperty("--span", Math.abs(share(value) - share(from)));
}

function showRow(i) {
  const { number, back } = rows[i];
  slide(rows[i], limits[i], start[i], pose[i]);
  number.disabled = digit === null;
  number.value = pose[i].toFixed(3);
  const bend = round(pose[i] - start[i]);
  back.textContent = bend ? `${bend > 0 ? "+" : "-"}${Math.abs(bend).toFixed(3)}` : "";
  back.disabled = !bend;
}

function move(i, value) {
  pose[i] = round(Math.max(limits[i][0], Math.min(limits[i][1], value)));
  grip = null;
  showRow(i);
  moves.forEach(showMove);
  remarkOn(i, null);
  redraw();
}

// A number from the field may leave the slider's range, which then grows.
function enter(i, typed) {
  const { most } = network(), value = Math.max(-most, Math.min(most, typed));
  limits[i] = [Math.min(limits[i][0], value), Math.max(limits[i][1], value)];
  move(i, value);
  if (typed !== value) remarkOn(i, { say: typed > value ? "tweak.at_most" : "tweak.at_least", most });
}

// Beside slider i; what was said before is gone.
function remarkOn(i, message) {
  words.say(remark, null);
  remark = rows[i].remark;
  words.say(remark, message);
}

// ---- one property at a time

const directionOf = (name) => (digit === null ? undefined : network().moves[digit][name]);
const amount = ({ offset, slope }, pose) => slope.reduce((sum, by, i) => sum + by * pose[i], offset);

function showMove(one) {
  const direction = directionOf(one.name);
  one.row.classList.toggle("missing", digit !== null && !direction);
  if (!direction) {
    slide(one, [-1, 1], 0, 0);
    one.range.disabled = one.back.disabled = true;
    return;
  }
  const from = amount(direction, start), value = grip?.name === one.name ? grip.value : amount(direction, pose);
  const { low, high } = direction, limits = [Math.min(low, from, value), Math.max(high, from, value)];
  slide(one, limits, from, value);
  words.say(one.range, { say: "tweak.percent", share: Math.round((100 * (value - low)) / (high - low)) }, "aria-valuetext");
  one.back.disabled = Math.abs(value - from) < 0.01 * (direction.high - direction.low);
}

// From the pose that it was taken at, so that many small moves add up to no other than one large one.
function moveAlone({ name }, value) {
  const direction = directionOf(name);
  if (grip?.name !== name) grip = { name, pose: [...pose], from: amount(direction, pose) };
  grip.value = value;
  moveAll(grip.pose.map((at, i) => at + (value - grip.from) * direction.change[i]));
}

// Where a number leaves its slider's range, that grows.
function moveAll(next) {
  const { most } = network();
  pose = next.map((value) => round(Math.max(-most, Math.min(most, value))));
  limits = limits.map(([low, high], i) => [Math.min(low, pose[i]), Math.max(high, pose[i])]);
  showAll();
  remarkOn(0, null);
  redraw();
}

moves.forEach((one) => {
  one.range.addEventListener("input", () => moveAlone(one, Number(one.range.value)));
  one.range.addEventListener("keydown", (event) => {
    const step = ARROWS[event.key];
    if (!step) return;
    event.preventDefault();
    const { low, high } = directionOf(one.name), [least, most, at] = [one.range.min, one.range.max, one.range.value].map(Number);
    moveAlone(one, Math.max(least, Math.min(most, at + (step * (high - low)) / 50)));
  });
  one.back.addEventListener("click", () => {
    moveAlone(one, amount(directionOf(one.name), start));
    one.range.focus();
  });
});

rows.forEach(({ range, number, back }, i) => {
  range.addEventListener("input", () => move(i, Number(range.value)));
  const typed = () => (Number.isNaN(number.valueAsNumber) ? null : number.valueAsNumber);
  number.addEventListener("change", () => {
    const wrong = typed() === null;
    enter(i, typed() ?? pose[i]);
    if (wrong) remarkOn(i, { say: "tweak.not_a_number", value: number.value });
  });
  // A decimal comma is a point; browsers that know no comma would drop it and make 5 of 0,5.
  number.addEventListener("beforeinput", (event) => {
    if (!event.data?.includes(",")) return;
    event.preventDefault();
    document.execCommand("insertText", false, event.data.replaceAll(",", "."));
  });
  for (const input of [range, number]) {
    input.addEventListener("keydown", (event) => {
      const step = ARROWS[event.key];
      if (!step || (input === number && /Left|Right/.test(event.key))) return;
      event.preventDefault();
      if (input === range) move(i, pose[i] + step * KEY_STEP);
      else enter(i, (typed() ?? pose[i]) + step * KEY_STEP);
    });
  }
  back.addEventListener("click", () => {
    move(i, start[i]);
    range.focus();
  });
});
resetAll.addEventListener("click", () => {
  reset();
  rows[0].range.focus({ preventScroll: true }); // a disabled button would lose the focus
});
// A pose that another panel made of the drawing's.
document.addEventListener("bend", ({ detail }) => {
  if (drawing?.network !== detail.network) return;
  if (digit !== detail.digit) choose(detail.digit);
  reset();
  moveAll(detail.pose);
});
document.addEventListener("capsule", (event) => drawing && choose(event.detail));

// ---- the opening

// Once to and fro, as if somebody tried the slider for slant.
const SWING = 3600, REACH = 0.4; // ms; share of the slider's range
let swinging = 0;

function swing() {
  const one = moves.find(({ name }) => name === "slant"), direction = directionOf(one.name), { top, bottom } = bent.getBoundingClientRect();
  if (!direction || bottom < 0 || top > innerHeight || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  const from = amount(direction, start), reach = REACH * (direction.high - direction.low);
  let began = null;
  const tick = (now) => {
    began ??= now;
    const share = Math.min(1, (now - began) / SWING);
    swinging = share < 1 ? requestAnimationFrame(tick) : 0;
    if (share < 1) moveAlone(one, from + reach * Math.sin(2 * Math.PI * share));
    else reset();
  };
  swinging = requestAnimationFrame(tick);
}

document.addEventListener("opening", ({ detail }) => {
  if (swinging) {
    cancelAnimationFrame(swinging);
    swinging = 0;
    reset();
  }
  if (detail === "bend") swing();
});

// ---- the picture

// The first picture of each network waits for the decoder's weights.
const draw = ({ drawing: { network }, digit, pose }) => decoderOf(network, props.networks[network].decoder).then((drawn) => drawn(digit, pose));

const picture = asker(bent, draw, {
  answered: (pixels, asked) => isBent(asked) && show(pixels, "tweak.picture"),
  failed: (asked) => isBent(asked) && show(null, "tweak.unanswered"),
  wanted: (asked) => isBent(asked),
});

// Whether what was asked is still what the sliders bend.
const isBent = (asked) => asked.drawing === drawing && asked.digit === digit && !same(pose, start);

function redraw() {
  const atStart = same(pose, start);
  resetAll.disabled = atStart;
  if (atStart) show(drawing && ownPicture(), "tweak.picture");
  else picture({ drawing, digit, pose: [...pose] });
}

function show(pixels, key) {
  paint(bent, pixels);
  const detail = pixels && { network: drawing.network, digit, pose: [...pose], pixels };
  document.dispatchEvent(new CustomEvent("bent", { detail }));
  words.say(caption, { say: key });
}

document.addEventListener("answer", ({ detail }) => take(detail.tweak));
take(props.value);
