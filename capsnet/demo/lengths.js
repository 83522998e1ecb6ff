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
    bar.setAttribute("aria-label", `Capsule ${bar.dataset.name}, length ${figures[k]}: bend its pose`);
  });
  verdict.classList.toggle("error", digit === null && !detail);
  verdict.querySelector(".marks").replaceChildren(...(suspects.length ? suspects : [null]).map(mark));
  write(verdict.querySelector("strong"), sentence);
  write(verdict.querySelector("p span"), detail);
}

function mark(k) {
  const tile = document.createElement("span");
  tile.className = `digit digit-${k === null ? "none" : k % 10}`;
  tile.textContent = k === null ? "?" : bars[k].dataset.name;
  return tile;
}

// Only what changed, so that a screen reader says it once.
function write(place, text) {
  if (place.textContent !== text) place.textContent = text;
}

bars.forEach((bar, k) =>
  bar.addEventListener("click", () => document.dispatchEvent(new CustomEvent("capsule", { detail: k })))
);
// Which of them is bent, from here or elsewhere.
document.addEventListener("chosen", ({ detail }) => {
  bars.forEach((bar, k) => bar.setAttribute("aria-pressed", k === detail?.digit));
});

document.addEventListener("answer", ({ detail }) => show(detail.lengths));
show(props.value);
