const canvas = element.querySelector("canvas");

function show({ pixels }) {
  paint(canvas, pixels ? decode(pixels) : null);
  canvas.setAttribute("aria-label", pixels ? "What the network sees, 28 by 28 pixels" : "What the network sees: nothing yet");
}

document.addEventListener("answer", ({ detail }) => show(detail.seen));
show(props.value);
