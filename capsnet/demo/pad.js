// The pad. A sheet is what is on it: {kind: "strokes", strokes}, {kind: "sample", index} or {kind: "file", data}. What
// the server says of it goes to the panels as the DOM event "answer"; the sheet itself goes as the DOM event "sheet", null during a stroke.
// Strokes are lists of [x, y] in 0..UNITS whatever the screen, so they redraw crisply at any size.
const UNITS = 280, INK = 17, NEAR = 2, MOST_POINTS = 3000;

const canvas = element.querySelector("canvas"), brush = canvas.getContext("2d");
const file = element.querySelector("input"), caption = element.querySelector(".caption");
const button = (name) => element.querySelector(`[data-do=${name}]`);

const blank = () => ({ kind: "strokes", strokes: [] });
let network = props.network, sheet = blank(), past = [], stroke = null, waiting = false;
let deeds = 0; // of the person: what one of them asked for comes too late after the next

// ---- what the pad looks like

function draw() {
  const ratio = (canvas.width = canvas.height = Math.round(canvas.clientWidth * devicePixelRatio)) / UNITS;
  brush.setTransform(ratio, 0, 0, ratio, 0, 0);
  brush.strokeStyle = brush.fillStyle = getComputedStyle(canvas).color;
  brush.lineWidth = INK;
  brush.lineCap = brush.lineJoin = "round";
  if (sheet.picture) place(sheet.picture);
  else sheet.strokes?.forEach(trace);
  element.querySelector(".hint").hidden = !isBlank();
  button("undo").disabled = !past.length;
  button("clear").disabled = isBlank();
  words.say(caption, sheet.caption);
}

// How far a file is; nothing is said of strokes, and a sample has said all from the start.
function note(about, message) {
  if (about.kind === "file") about.caption = message;
  words.say(caption, sheet.caption);
}

function trace(points) {
  const [[x, y], ...rest] = points;
  brush.beginPath();
  brush.moveTo(x, y);
  brush.lineTo(x, y);
  rest.forEach(([u, v], i) => {
    const [p, q] = rest[i + 1] ?? [u, v]; // halfway to the next point, the last one itself
    brush.quadraticCurveTo(u, v, (u + p) / 2, (v + q) / 2);
  });
  brush.stroke();
}

function place(picture) {
  const scale = UNITS / Math.max(picture.width, picture.height);
  const [w, h] = [picture.width * scale, picture.height * scale];
  brush.imageSmoothingEnabled = scale < 1;
  brush.drawImage(picture, (UNITS - w) / 2, (UNITS - h) / 2, w, h);
}

const isBlank = () => isEmpty(sheet);

// ---- what the server gets

const show = (answer) => document.dispatchEvent(new CustomEvent("answer", { detail: answer }));
const read = asker(canvas, ({ asked, by }) => server.answer({ network: by, ...plain(asked) }), {
  answered(answer, { asked, by }) {
    if (by === network) show({ ...answer, sheet: asked });
    note(asked, asked.name);
  },
  failed({ asked }) {
    words.say(caption, sheet.caption);
    show(props.silence);
    if (asked.kind === "file") note(asked, { say: "pad.unread", name: asked.name });
  },
  slow: ({ asked }) => asked.kind !== "file" && words.say(caption, { say: "pad.busy" }), // an upload takes long by itself
  wanted: ({ asked, by }) => asked === sheet && by === network,
  patience: ({ asked }) => patienceFor(asked),
});

function send() {
  note(sheet, { say: "pad.reading", name: sheet.name });
  read({ asked: sheet, by: network });
  draw();
  document.dispatchEvent(new CustomEvent("sheet", { detail: stroke ? null : sheet }));
}

// During a stroke once a frame is enough; its end is sent at once.
function sendSoon() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    if (stroke) send();
  });
}

function turnTo(next) {
  past.push({ ...sheet, strokes: sheet.strokes && [...sheet.strokes] });
  sheet = next;
  send();
}

function lift() {
  if (!stroke) return;
  stroke = null;
  send();
}

// What the person does ends the stroke. Returns the deed's number.
function begin() {
  lift();
  return ++deeds;
}

document.addEventListener("network", ({ detail }) => {
  if (detail === network) return;
  network = detail;
  send();
});

// ---- drawing

function point(event) {
  const box = canvas.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top].map((v) => Math.round((v / box.width) * UNITS * 10) / 10);
}

// Keeps what is sent small: points that hardly move are left out, and a scribble without end loses every second point.
function extend(points, next) {
  const [x, y] = points.at(-1);
  if (Math.hypot(next[0] - x, next[1] - y) < NEAR) return;
  points.push(next);
  if (sheet.strokes.reduce((sum, one) => sum + one.length, 0) > MOST_POINTS) {
    for (const one of sheet.strokes) {
      const kept = one.filter((_, i) => i % 2 === 0 || i === one.length - 1);
      one.splice(0, one.length, ...kept);
    }
  }
}

canvas.addEventListener("pointerdown", (event) => {
  if (!event.isPrimary || event.button !== 0) return;
  event.preventDefault();
  begin();
  canvas.setPointerCapture(event.pointerId);
  if (sheet.isExample) [sheet, past] = [blank(), []]; // it makes room
  stroke = [point(event)];
  turnTo({ ...blank(), strokes: [...(sheet.kind === "strokes" ? sheet.strokes : []), stroke] });
});
canvas.addEventListener("pointermove", (event) => {
  if (!stroke || !event.isPrimary) return;
  const moves = event.getCoalescedEvents?.() ?? [];
  for (const move of moves.length ? moves : [event]) extend(stroke, point(move));
  sendSoon();
});
// A stroke is no gesture: a quick one would count as a fling, and the browser swallow the tap that follows it.
canvas.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false });
for (const end of ["pointerup", "pointercancel"]) {
  canvas.addEventListener(end, (event) => event.isPrimary && lift());
}

// ---- the buttons

button("undo").addEventListener("click", () => {
  begin();
  sheet = past.pop();
  send();
  if (!past.length) button("sample").focus(); // a disabled button would lose the focus
});
button("clear").addEventListener("click", () => {
  begin();
  turnTo(blank());
  button("undo").focus();
});
button("upload").addEventListener("click", () => file.click());

const pick = asker(button("sample"), ({ previous, index, label }) => server.sample({ previous, index, label }), {
  answered({ index, label, number, pixels }, { deed }) {
    if (deed !== deeds) return;
    const picture = Object.assign(document.createElement("canvas"), { width: SIDE, height: SIDE });
    paint(picture, decode(pixels), getComputedStyle(canvas).color);
    turnTo({ kind: "sample", index, picture, caption: { say: "pad.sampled", number, label } });
  },
  failed({ deed }) {
    if (deed === deeds) words.say(caption, { say: "pad.unreachable" });
  },
});
button("sample").addEventListener("click", () => pick({ deed: begin(), previous: sheet.index }));

// Without a pointer: a digit's key brings one that somebody wrote.
canvas.addEventListener("keydown", ({ key, ctrlKey, altKey, metaKey }) => {
  if (/^\d$/.test(key) && !ctrlKey && !altKey && !metaKey) pick({ deed: begin(), previous: sheet.index, label: Number(key) });
});

// A sheet that comes back.
document.addEventListener("take", ({ detail }) => {
  const deed = begin();
  if (detail.kind === "sample" && !detail.picture) pick({ deed, index: detail.index });
  else turnTo(detail);
});

// What another panel has to say where people look; it stays until there is another sheet.
document.addEventListener("notice", ({ detail }) => {
  sheet.caption = detail;
  draw();
});

// ---- pictures from a file

async function open(chosen) {
  if (!chosen) return;
  const deed = begin();
  if (chosen.size > Number(file.dataset.limit)) {
    words.say(caption, { say: "pad.large", name: chosen.name, limit: file.dataset.limit / 1e6 });
    return;
  }
  words.say(caption, { say: "pad.reading", name: chosen.name });
  const content = await chosen.arrayBuffer().catch(() => null);
  if (deed !== deeds) return;
  if (!content) {
    words.say(caption, { say: "pad.shut", name: chosen.name });
    return;
  }
  const bytes = new Uint8Array(content);
  let text = "";
  for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  const picture = await createImageBitmap(chosen).catch(() => null); // the server may read what the browser cannot show
  if (deed === deeds) turnTo({ kind: "file", data: btoa(text), picture, name: chosen.name });
}

file.addEventListener("change", () => {
  open(file.files[0]);
  file.value = ""; // so that the same file can be chosen twice
});
element.addEventListener("drop", (event) => open(event.dataTransfer.files[0]));
// A file dropped anywhere else would take the page's place.
for (const kind of ["dragover", "drop"]) {
  window.addEventListener(kind, (event) => event.dataTransfer.types.includes("Files") && event.preventDefault());
}

new ResizeObserver(draw).observe(canvas);
draw();
