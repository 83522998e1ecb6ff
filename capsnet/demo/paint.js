const SIDE = 28;

// Pixels travel as base64 of unsigned bytes, row by row, ink 255.
function decode(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

// Paints bytes in one colour on nothing, by default the canvas's own in CSS; null wipes it.
function paint(canvas, bytes, colour = getComputedStyle(canvas).color) {
  const brush = canvas.getContext("2d");
  const picture = brush.createImageData(SIDE, SIDE);
  for (let i = 0; bytes && i < SIDE * SIDE; i++) picture.data[4 * i + 3] = bytes[i];
  brush.putImageData(picture, 0, 0);
  brush.globalCompositeOperation = "source-in";
  brush.fillStyle = colour;
  brush.fillRect(0, 0, SIDE, SIDE);
  brush.globalCompositeOperation = "source-over";
}
