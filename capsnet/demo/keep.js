// The last drawings, a link that holds the present one, and what the decoder made of it as files. All of it stays in
// the browser: a link keeps everything behind its #, which is never sent.
const MOST = 8, LONGEST = 6000, LARGE = 280; // drawings in the strip; letters of a link; pixels of a saved picture
const MARK = "#drawing=";

const strip = element.querySelector("ol"), status = element.querySelector("[role=status]");
const address = element.querySelector(".link");
const button = (name) => element.querySelector(`[data-do=${name}]`);

let now = null; // {sheet}, with `seen` and `digit` once it was read, and `bent` from the sliders: what is on the pad
let kept = []; // the same, the last one first
let isBusy = false; // a stroke is being drawn, whose answers are not those of `now`
let linked = null; // the sheet that the address holds
let wish = null; // {sheet, bent}: what the sliders are to show of a drawing that comes back, until it has been read

const say = (message) => words.say(status, message);
const tell = (name, detail) => document.dispatchEvent(new CustomEvent(name, { detail }));

function isSame(one, other) {
  if (one.kind !== other.kind) return false;
  if (one.kind === "strokes") return one.strokes[0] === other.strokes[0];
  return one.index === other.index && one.data === other.data;
}

// ---- what was drawn

function turnTo(sheet) {
  if (now && !isSame(now.sheet, sheet)) {
    if (now.seen && !now.sheet.isExample) keep(now);
    now = null;
  }
  if (linked && !isSame(linked, sheet)) { // else a reload would bring it back
    linked = null;
    history.replaceState(history.state, "", location.href.split("#")[0]);
  }
  now = isEmpty(sheet) ? null : { ...now, sheet };
  address.hidden = true;
  say(null);
  offer();
}

function keep(drawing) {
  kept = [drawing, ...kept.filter(({ sheet }) => !isSame(sheet, drawing.sheet))].slice(0, MOST);
  strip.replaceChildren(...kept.map(tile));
  strip.querySelectorAll("canvas").forEach((canvas, i) => paint(canvas, decode(kept[i].seen)));
}

function tile(drawing) {
  const item = document.createElement("li"), back = document.createElement("button");
  const canvas = Object.assign(document.createElement("canvas"), { className: "screen", width: SIDE, height: SIDE });
  back.type = "button";
  back.className = `digit digit-${drawing.digit % 10}`;
  words.say(back, { say: "keep.back", name: props.names[drawing.digit] }, "aria-label");
  back.append(canvas);
  back.addEventListener("click", () => goOn(drawing.sheet, drawing.bent));
  item.append(back);
  return item;
}

// With a drawing, as its sliders were.
function goOn(sheet, bent) {
  wish = bent ? { sheet, bent } : null;
  tell("take", sheet);
  if (bent) tell("network", bent.network);
}

document.addEventListener("sheet", ({ detail }) => {
  isBusy = !detail;
  if (detail) turnTo(detail);
});
document.addEventListener("answer", ({ detail: { sheet, seen, tweak } }) => {
  if (!sheet || !seen.pixels) return;
  if (now && isSame(sheet, now.sheet)) Object.assign(now, { seen: seen.pixels, digit: tweak.digit });
  if (!wish || !isSame(sheet, wish.sheet) || tweak.network !== wish.bent.network) return;
  const { network, digit, pose } = wish.bent;
  wish = null;
  setTimeout(() => tell("bend", { network, digit, pose })); // once the sliders have the answer, too
});
document.addEventListener("bent", ({ detail }) => {
  if (now && !isBusy) now.bent = detail;
  offer();
});

function offer() {
  for (const name of ["link", "picture", "pose"]) button(name).disabled = !now?.bent;
}

// ---- the link

function write({ sheet, bent: { network, digit, pose } }) {
  const about = { network, digit, pose };
  if (sheet.kind === "sample") return pack({ ...about, index: sheet.index });
  let strokes = sheet.strokes.map((points) => points.map((point) => point.map(Math.round)));
  let text = pack({ ...about, strokes });
  while (text.length > LONGEST && strokes.some((points) => points.length > 2)) {
    strokes = strokes.map((points) => points.filter((_, i) => i % 2 === 0 || i === points.length - 1));
    text = pack({ ...about, strokes });
  }
  return text;
}

// As base64 of JSON, with letters that need no escape in an address.
function pack(value) {
  const bytes = new TextEncoder().encode(JSON.stringify(value));
  const text = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  return text.replace(/=+$/, "").replaceAll("+", "-").replaceAll("/", "_");
}

function unpack(text) {
  const bytes = decode(text.replaceAll("-", "+").replaceAll("_", "/"));
  return JSON.parse(new TextDecoder().decode(bytes));
}

// What a link says, or an error where that is no drawing.
function read(text) {
  const { network, digit, pose, strokes, index } = unpack(text);
  const isPoint = (point) => Array.isArray(point) && point.length === 2 && point.every(Number.isFinite);
  const isBelow = (count, value) => Number.isInteger(value) && value >= 0 && value < count;
  const isStroke = (points) => Array.isArray(points) && points.length > 0 && points.every(isPoint);
  const sheet = strokes ? { kind: "strokes", strokes } : { kind: "sample", index };
  const drawn = strokes ? Array.isArray(strokes) && strokes.length > 0 && strokes.every(isStroke) : isBelow(props.samples, index);
  const bent = Array.isArray(pose) && pose.length === props.size && pose.every(Number.isFinite) && isBelow(props.names.length, digit);
  if (!drawn || !bent || !props.networks.includes(network)) throw new Error("no drawing");
  return [sheet, { network, digit, pose }];
}

function open() {
  if (!location.hash.startsWith(MARK)) return;
  try {
    const [sheet, bent] = read(location.hash.slice(MARK.length));
    linked = sheet;
    goOn(sheet, bent);
  } catch {
    tell("notice", { say: "keep.broken" });
  }
}

// Panels come in no certain order.
(function follow() {
  if (document.querySelectorAll("[data-listens]").length < props.panels) requestAnimationFrame(follow);
  else {
    open();
    tell("ready");
  }
})();
window.addEventListener("hashchange", open);

button("link").addEventListener("click", async () => {
  if (now.sheet.kind === "file") return say({ say: "keep.unlinked" });
  const link = `${location.href.split("#")[0]}${MARK}${write(now)}`;
  history.replaceState(history.state, "", link);
  linked = now.sheet;
  try {
    await navigator.clipboard.writeText(link);
    say({ say: "keep.copied" });
  } catch {
    address.value = link;
    address.hidden = false;
    address.select();
    say({ say: "keep.select" });
  }
});

// ---- files

button("picture").addEventListener("click", () => {
  const { digit, pixels } = now.bent;
  const [small, large] = [SIDE, LARGE].map((side) => Object.assign(document.createElement("canvas"), { width: side, height: side }));
  paint(small, pixels, "white");
  const brush = large.getContext("2d");
  brush.fillRect(0, 0, LARGE, LARGE);
  brush.imageSmoothingEnabled = false;
  brush.drawImage(small, 0, 0, LARGE, LARGE);
  large.toBlob((blob) => save(blob, `digit-${props.names[digit]}.png`));
});

button("pose").addEventListener("click", () => {
  const { network, digit, pose } = now.bent, { strokes } = now.sheet;
  const text = JSON.stringify({ network, digit: props.names[digit], pose, strokes });
  save(new Blob([text], { type: "application/json" }), `digit-${props.names[digit]}.json`);
});
