const canvas = element.querySelector("canvas");

function show() {
  const { pixels } = props.value;
  paint(canvas, pixels ? decode(pixels) : null);
  canvas.setAttribute("aria-label", pixels ? "What the network sees, 28 by 28 pixels" : "What the network sees: nothing yet");
}

watch("value", show);
show();
