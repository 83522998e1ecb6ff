// The sliders and their picture. `start` is the drawing's own pose, `pose` where the sliders stand. One picture is asked
// for at a time; when it comes and the sliders have moved on, the newest pose goes out: the last position always wins.
const KEY_STEP = 0.01, LONGEST = 1; // a squashed vector stays within ±1, so no pose number lies beyond

const panel = element.querySelector(".panel"), note = element.querySelector(".note");
const [bent, own] = element.querySelectorAll("figure canvas");
const resetAll = element.querySelector("[data-do=reset]");
const rows = [...element.querySelectorAll(".slider")].map((row) => ({
  range: row.querySelector("[type=range]"),
  number: row.querySelector("[type=number]"),
  back: row.querySelector(".back"),
  rail: row.querySelector(".rail"),
}));

let drawing = null, digit = null, start = [], pose = [], limits = [], asking = false;

const round = (value) => Math.round(value * 1000) / 1000;
const same = (one, other) => one.every((value, i) => value === other[i]);
const ownPicture = () => decode(drawing.pictures).subarray(digit * SIDE * SIDE, (digit + 1) * SIDE * SIDE);

// ---- a new drawing, or another of its capsules

function take() {
  drawing = props.value.poses ? props.value : null;
  choose(drawing ? drawing.digit : null);
}

function choose(next) {
  digit = next;
  const idle = digit === null, name = props.names[digit];
  panel.className = `panel digit digit-${idle ? "none" : digit % 10}`;
  element.querySelector("h2").textContent = idle ? "Bend the pose" : `Bend the pose of the ${name}`;
  note.textContent = idle ? "Draw a digit to get its pose." : "";
  bent.setAttribute("aria-label", idle ? "No picture yet" : `The ${name} that the decoder draws of the sliders' pose`);
  own.setAttribute("aria-label", idle ? "No picture yet" : `The ${name} that the decoder draws of your drawing's pose`);
  start = idle ? rows.map(() => 0) : drawing.poses[digit];
  pose = [...start];
  limits = start.map((value, i) => {
    const [low, high] = idle ? [-1, 1] : props.ranges[digit][i];
    return [Math.min(low, value), Math.max(high, value)];
  });
  rows.forEach((_, i) => showRow(i));
  paint(own, idle ? null : ownPicture());
  redraw();
}

// ---- sliders

function showRow(i) {
  const { range, number, back, rail } = rows[i], [low, high] = limits[i];
  const share = (value) => (value - low) / (high - low || 1);
  range.disabled = number.disabled = digit === null;
  [range.min, range.max, range.value] = [low, high, pose[i]];
  number.value = pose[i].toFixed(3);
  rail.style.setProperty("--start", share(start[i]));
  rail.style.setProperty("--from", Math.min(share(start[i]), share(pose[i])));
  rail.style.setProperty("--span", Math.abs(share(pose[i]) - share(start[i])));
  const bend = round(pose[i] - start[i]);
  back.textContent = bend ? `${bend > 0 ? "+" : "−"}${Math.abs(bend).toFixed(3)}` : "";
  back.disabled = !bend;
}

function move(i, value) {
  pose[i] = round(Math.max(limits[i][0], Math.min(limits[i][1], value)));
  showRow(i);
  redraw();
}

rows.forEach(({ range, number, back }, i) => {
  range.addEventListener("input", () => move(i, Number(range.value)));
  number.addEventListener("change", () => {
    const typed = number.value === "" ? pose[i] : Math.max(-LONGEST, Math.min(LONGEST, Number(number.value)));
    limits[i] = [Math.min(limits[i][0], typed), Math.max(limits[i][1], typed)];
    move(i, typed);
  });
  for (const input of [range, number]) {
    input.addEventListener("keydown", (event) => {
      const step = { ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1 }[event.key];
      if (!step || (input === number && /Left|Right/.test(event.key))) return;
      event.preventDefault();
      move(i, pose[i] + step * KEY_STEP);
    });
  }
  back.addEventListener("click", () => {
    move(i, start[i]);
    range.focus();
  });
});
resetAll.addEventListener("click", () => choose(digit));
document.addEventListener("capsule", (event) => drawing && choose(event.detail));

// ---- the picture

async function redraw() {
  const atStart = same(pose, start);
  resetAll.disabled = atStart;
  if (atStart) return paint(bent, drawing && ownPicture());
  if (asking) return;
  asking = true;
  const asked = { drawing, digit, pose: [...pose] };
  const current = () => asked.drawing === drawing && asked.digit === digit;
  try {
    const pixels = await server.bend([asked.digit, asked.pose]);
    note.textContent = "";
    if (current() && !same(pose, start)) paint(bent, decode(pixels));
  } catch {
    note.textContent = "The server did not answer: is it still running?";
  }
  asking = false;
  if (!current() || !same(asked.pose, pose)) redraw();
}

watch("value", take);
take();
