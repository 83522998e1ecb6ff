// The pad. A sheet is what is on it: {kind: "strokes", strokes}, {kind: "sample", index} or {kind: "file", data}.
// Strokes are lists of [x, y] in 0..UNITS whatever the screen, so they redraw crisply at any size.
const UNITS = 280, INK = 17, NEAR = 2, MOST_POINTS = 3000;

const canvas = element.querySelector("canvas"), brush = canvas.getContext("2d");
const file = element.querySelector("input"), caption = element.querySelector(".caption");
const button = (name) => element.querySelector(`[data-do=${name}]`);

const blank = () => ({ kind: "strokes", strokes: [] });
let sheet = blank(), past = [], stroke = null, count = 0, waiting = false;

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
  caption.textContent = sheet.caption ?? "";
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

const isBlank = () => sheet.kind === "strokes" && !sheet.strokes.length;

// ---- what the server gets: Gradio sends only the last sheet while one is under way

function send() {
  draw();
  const { kind, strokes, index, data } = sheet;
  props.value = structuredClone({ id: ++count, kind, strokes, index, data });
  trigger("draw");
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
  canvas.setPointerCapture(event.pointerId);
  stroke = [point(event)];
  turnTo({ ...blank(), strokes: [...(sheet.kind === "strokes" ? sheet.strokes : []), stroke] });
});
canvas.addEventListener("pointermove", (event) => {
  if (!stroke || !event.isPrimary) return;
  const moves = event.getCoalescedEvents?.() ?? [];
  for (const move of moves.length ? moves : [event]) extend(stroke, point(move));
  sendSoon();
});
for (const end of ["pointerup", "pointercancel"]) {
  canvas.addEventListener(end, (event) => {
    if (!stroke || !event.isPrimary) return;
    stroke = null;
    send();
  });
}

// ---- the buttons

button("undo").addEventListener("click", () => {
  sheet = past.pop();
  send();
});
button("clear").addEventListener("click", () => turnTo(blank()));
button("upload").addEventListener("click", () => file.click());

button("sample").addEventListener("click", async () => {
  try {
    const { index, label, number, pixels } = await server.sample(sheet.index ?? null);
    const picture = Object.assign(document.createElement("canvas"), { width: SIDE, height: SIDE });
    paint(picture, decode(pixels), getComputedStyle(canvas).color);
    turnTo({ kind: "sample", index, picture, caption: `MNIST test digit ${number}, labelled ${label}.` });
  } catch {
    caption.textContent = "The server did not answer: is it still running?";
  }
});

file.addEventListener("change", async () => {
  const chosen = file.files[0];
  file.value = ""; // so that the same file can be chosen twice
  if (!chosen) return;
  if (chosen.size > Number(file.dataset.limit)) {
    caption.textContent = `${chosen.name} is too large: choose a picture under ${file.dataset.limit / 1e6} MB.`;
    return;
  }
  const bytes = new Uint8Array(await chosen.arrayBuffer());
  let text = "";
  for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  const picture = await createImageBitmap(chosen).catch(() => null); // the server may read what the browser cannot show
  turnTo({ kind: "file", data: btoa(text), picture, caption: chosen.name });
});

new ResizeObserver(draw).observe(canvas);
draw();
