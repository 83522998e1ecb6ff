const SETTLED = 800; // ms
const bars = [...element.querySelectorAll(".bar")], verdict = element.querySelector(".verdict");

function show({ lengths, figures, digit, suspects, sentence, detail, pictures }) {
  const bytes = pictures && decode(pictures);
  // Painting reads colours: all of it before anything is written, or the browser works out styles ten times.
  bars.forEach((bar, k) => {
    paint(bar.querySelector("canvas"), bytes && bytes.subarray(k * SIDE * SIDE, (k + 1) * SIDE * SIDE));
  });
  bars.forEach((bar, k) => {
    bar.querySelector(".fill").style.width = `${100 * lengths[k]}%`;
    bar.querySelector(".value").textContent = figures[k];
    bar.classList.toggle("winner", k === digit);
    bar.disabled = digit === null;
    words.say(bar, { say: "lengths.bar", name: bar.dataset.name, figure: figures[k] }, "aria-label");
  });
  verdict.classList.toggle("error", digit === null && !detail);
  verdict.querySelector(".marks").replaceChildren(...(suspects.length ? suspects : [null]).map(mark));
  words.say(verdict.querySelector("strong"), sentence);
  words.say(verdict.querySelector("p span"), detail);
}

function mark(k) {
  const tile = document.createElement("span");
  tile.className = `digit digit-${k === null ? "none" : k % 10}`;
  tile.textContent = k === null ? "?" : bars[k].dataset.name;
  return tile;
}

bars.forEach((bar, k) =>
  bar.addEventListener("click", () => document.dispatchEvent(new CustomEvent("capsule", { detail: k })))
);
// Which of them is bent, from here or elsewhere.
document.addEventListener("chosen", ({ detail }) => {
  bars.forEach((bar, k) => bar.setAttribute("aria-pressed", k === detail?.digit));
});

// The verdict is heard once it has settled, not at every moment of a stroke.
const heard = element.querySelector(".heard");
let settling = 0;
document.addEventListener("answer", ({ detail: { lengths: { sentence, detail } } }) => {
  clearTimeout(settling);
  settling = setTimeout(() => words.say(heard, { say: "verdict.heard", sentence, detail }), SETTLED);
});

document.addEventListener("answer", ({ detail }) => show(detail.lengths));
show(props.value);
