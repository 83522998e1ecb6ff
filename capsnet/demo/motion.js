// How a drawing gets into the 28 × 28 pixels: it lies there as on the pad, grows or shrinks to 20 pixels, slides until its
// ink is balanced around the middle, and becomes pixels. Shown once for every drawing after its first stroke, and again
// at the button; who wants no motion sees four still pictures, and only at the button.
const ON_PAD = SIDE / 280, PAD_PEN = 17 * ON_PAD; // pad → frame; the pad's pen there
const BOX = 20, PEN = 2.5, MIDDLE = SIDE / 2, CENTRE = 14.5; // as capsnet/strokes.py has them
const STAGES = [450, 650, 500, 500]; // ms: as it lies, scaled, balanced, pixels

const stage = element.querySelector(".motion"), again = element.querySelector(".again");
const isStill = matchMedia("(prefers-reduced-motion: reduce)");
let shown = null; // {strokes, pixels}: of the drawing in the frame, pixels as they travel
let fresh = null, playing = 0; // a sheet with its first stroke, until it was read; the next frame's number

const boundsOf = (points) => [0, 1].map((k) => [Math.min(...points.map((p) => p[k])), Math.max(...points.map((p) => p[k]))]);

// The middle of what lines weigh: each piece at its middle, by its length.
function balanceOf(strokes) {
  let weight = 0, x = 0, y = 0;
  for (const points of strokes) {
    points.slice(1).forEach(([u, v], i) => {
      const [p, q] = points[i], length = Math.hypot(u - p, v - q);
      weight += length;
      x += (length * (u + p)) / 2;
      y += (length * (v + q)) / 2;
    });
  }
  return weight ? [x / weight, y / weight] : strokes[0][0];
}

function balanceOfPixels(bytes) {
  let weight = 0, x = 0, y = 0;
  bytes.forEach((ink, i) => {
    weight += ink;
    x += ink * ((i % SIDE) + 0.5);
    y += ink * (Math.floor(i / SIDE) + 0.5);
  });
  return [x / weight, y / weight];
}

// How the strokes stand at the end of each stage: frame = scale × pad + shift, with a pen of that width.
function stands({ strokes, pixels }) {
  const [[left, right], [top, bottom]] = boundsOf(strokes.flat());
  const scale = (BOX - PEN) / (Math.max(right - left, bottom - top) || 1);
  const boxed = [MIDDLE - (scale * (left + right)) / 2, MIDDLE - (scale * (top + bottom)) / 2];
  const own = balanceOf(strokes), wanted = balanceOfPixels(decode(pixels));
  return [
    { scale: ON_PAD, shift: [0, 0], pen: PAD_PEN },
    { scale, shift: boxed, pen: PEN },
    { scale, shift: own.map((v, k) => wanted[k] - scale * v), pen: PEN },
  ];
}

const smooth = (share) => share * share * (3 - 2 * share);
const mix = (one, other, share) => one + (other - one) * share;

function paintStage(stood, number, share) {
  const brush = stage.getContext("2d"), size = Math.round(stage.clientWidth * devicePixelRatio), unit = size / SIDE;
  stage.width = stage.height = size;
  const from = stood[Math.min(number, 3) - 1] ?? stood[0], to = stood[Math.min(number, 2)], part = smooth(share);
  const scale = mix(from.scale, to.scale, part), [x, y] = [0, 1].map((k) => mix(from.shift[k], to.shift[k], part));
  const style = getComputedStyle(stage), line = style.getPropertyValue("--guide");
  brush.globalAlpha = number === 3 ? 1 - part : 1;
  brush.setTransform(unit, 0, 0, unit, 0, 0);
  brush.fillStyle = style.getPropertyValue("--screen");
  brush.fillRect(0, 0, SIDE, SIDE);
  brush.strokeStyle = line;
  brush.lineWidth = 1.5 / unit;
  if (number >= 1) brush.strokeRect(MIDDLE - BOX / 2, MIDDLE - BOX / 2, BOX, BOX);
  if (number >= 2) {
    brush.beginPath();
    for (const [u, v] of [[CENTRE, 0], [0, CENTRE]]) {
      brush.moveTo(u, v);
      brush.lineTo(u || SIDE, v || SIDE);
    }
    brush.stroke();
  }
  brush.strokeStyle = "#fff";
  brush.lineCap = brush.lineJoin = "round";
  brush.lineWidth = mix(from.pen, to.pen, part);
  brush.beginPath();
  for (const points of shown.strokes) {
    points.forEach(([u, v], i) => brush[i ? "lineTo" : "moveTo"](scale * u + x, scale * v + y));
    if (points.length === 1) brush.lineTo(scale * points[0][0] + x, scale * points[0][1] + y);
  }
  brush.stroke();
}

function play() {
  stop();
  const stood = stands(shown);
  let began = null;
  stage.hidden = false;
  const tick = (now) => {
    began ??= now;
    let time = now - began, number = 0;
    while (number < STAGES.length && time >= STAGES[number]) time -= STAGES[number++];
    if (number === STAGES.length) return stop();
    paintStage(stood, number, isStill.matches ? 1 : number ? time / STAGES[number] : 1);
    playing = requestAnimationFrame(tick);
  };
  playing = requestAnimationFrame(tick);
}

function stop() {
  cancelAnimationFrame(playing);
  stage.hidden = true;
}

again.addEventListener("click", play);
document.addEventListener("sheet", ({ detail }) => {
  stop();
  fresh = detail?.kind === "strokes" && detail.strokes.length === 1 && !detail.isExample ? detail : null;
});
document.addEventListener("answer", ({ detail: { sheet, seen } }) => {
  const isDrawn = sheet?.kind === "strokes" && seen.pixels;
  shown = isDrawn ? { strokes: sheet.strokes, pixels: seen.pixels } : null;
  again.hidden = !shown;
  if (!shown) return stop();
  if (sheet !== fresh) return;
  fresh = null;
  if (!isStill.matches) play();
});
document.addEventListener("opening", ({ detail }) => detail === "see" && shown && !isStill.matches && play());
