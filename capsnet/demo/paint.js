element.dataset.listens = ""; // this panel's script runs
words.fill(element);
const SIDE = 28;

// Pixels travel as base64 of unsigned bytes, row by row, ink 255.
function decode(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

// Paints bytes in one colour on nothing, by default the canvas's own in CSS; null wipes it. On a canvas with room for
// several pictures, of `side` pixels, they go from left to right, then down.
function paint(canvas, bytes, colour = getComputedStyle(canvas).color, side = SIDE) {
  const brush = canvas.getContext("2d"), { width, height } = canvas;
  const picture = brush.createImageData(width, height);
  for (let y = 0; bytes && y < height; y++) {
    for (let x = 0; x < width; x++) {
      const number = Math.floor(y / side) * (width / side) + Math.floor(x / side);
      picture.data[4 * (y * width + x) + 3] = bytes[(number * side + (y % side)) * side + (x % side)];
    }
  }
  brush.putImageData(picture, 0, 0);
  brush.globalCompositeOperation = "source-in";
  brush.fillStyle = colour;
  brush.fillRect(0, 0, width, height);
  brush.globalCompositeOperation = "source-over";
}
