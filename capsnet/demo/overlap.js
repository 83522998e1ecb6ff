// Two digits over each other: the drawing on the pad, or a pair from MNIST until there is another drawing.
const place = element.querySelector(".layers"), status = element.querySelector("[role=status]");
const seen = element.querySelector(".seen"), both = element.querySelector(".both"), rest = element.querySelector(".rest");
const alone = [...element.querySelectorAll(".alone")], spectrum = element.querySelector(".spectrum");
const button = (name) => element.querySelector(`[data-do=${name}]`), size = props.side * props.side;
const USUAL = 2; // digits that are looked for

let sheet = null;

const view = whileInView(place, (asked) => ask(asked));
const ask = asker(place, (asked) => server.overlap(asked.kind === "pair" ? { kind: "pair" } : plain(asked)), {
  answered(answer, asked) {
    if (!view.isNewest(asked)) return;
    view.finish(asked);
    show(answer.why ? null : answer, answer.why ?? answer.says);
  },
  failed: (asked) => view.isNewest(asked) && show(null, { say: "silence.sentence" }),
  wanted: view.wants,
  patience: patienceFor,
});

let isBare = true; // no answer is shown

function show(found, message) {
  isBare = !found;
  const digits = found?.digits ?? [], pictures = found && decode(found.pictures);
  paint(seen, found && decode(found.seen), undefined, props.side);
  paint(rest, found && decode(found.unexplained), undefined, props.side);
  alone.forEach((figure, i) => {
    const canvas = figure.querySelector("canvas"), digit = digits[i], there = digit !== undefined;
    figure.hidden = !there && i >= USUAL;
    canvas.className = `screen digit digit-${there ? digit % 10 : "none"}`;
    paint(canvas, there ? pictures.subarray(i * size, (i + 1) * size) : null, undefined, props.side);
    const caption = there
      ? { say: "overlap.alone", name: props.names[digit], length: found.lengths[digit].toFixed(2) }
      : { say: i ? "overlap.nobody" : "overlap.nobody_first" };
    words.say(figure.querySelector("figcaption"), caption);
    words.say(canvas, caption, "aria-label");
  });
  layer(digits.map((_, i) => alone[i].querySelector("canvas")));
  words.say(seen, { say: found ? "overlap.seen_label" : "overlap.seen_none" }, "aria-label");
  words.say(both, digits.length ? { say: "overlap.both_label", names: digits.map((k) => props.names[k]) } : { say: "overlap.both_none" }, "aria-label");
  words.say(rest, found ? found.share : { say: "overlap.rest_none" }, "aria-label");
  words.say(element.querySelector(".share"), found ? found.share : { say: "overlap.rest" });
  [...spectrum.children].forEach((bar, k) => {
    bar.style.setProperty("--length", found?.lengths[k] ?? 0);
    bar.classList.toggle("winner", digits.includes(k));
  });
  const read = found?.lengths.map((length, k) => `${props.names[k]} ${length.toFixed(2)}`);
  words.say(spectrum, read ? { say: "compare.figures", figures: read } : { say: "compare.no_lengths" }, "aria-label");
  words.say(element.querySelector(".answer"), found?.answer);
  words.say(status, message);
}

// The digits in their colours over one another, as light adds up.
function layer(canvases) {
  const brush = both.getContext("2d");
  brush.clearRect(0, 0, props.side, props.side);
  brush.globalCompositeOperation = "lighter";
  for (const canvas of canvases) brush.drawImage(canvas, 0, 0);
  brush.globalCompositeOperation = "source-over";
}

function turnTo(next) {
  button("own").disabled = !sheet || isEmpty(sheet) || next === sheet;
  if (next && isEmpty(next)) show(null, { say: "overlap.empty" });
  else if (next && isBare) words.say(status, { say: "pad.reading_drawing" });
  view.turnTo(next);
}

button("pair").addEventListener("click", () => turnTo({ kind: "pair" })); // each time another one
button("own").addEventListener("click", () => turnTo(sheet));
document.addEventListener("sheet", ({ detail }) => {
  sheet = detail;
  turnTo(sheet);
});
spectrum.style.setProperty("--threshold", props.threshold);
show(null, { say: "overlap.empty" });
