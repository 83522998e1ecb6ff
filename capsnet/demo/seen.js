const canvas = element.querySelector("canvas");

function show({ pixels }) {
  paint(canvas, pixels ? decode(pixels) : null);
  words.say(canvas, { say: pixels ? "seen.label" : "seen.none" }, "aria-label");
}

document.addEventListener("answer", ({ detail }) => show(detail.seen));
show(props.value);
