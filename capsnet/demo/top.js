// A finger that scrolls the page over a slider has moved it as it landed: once the browser scrolls, it goes back.
const landed = new WeakMap();
document.addEventListener("pointerdown", ({ target }) => target.type === "range" && landed.set(target, target.value), true);
document.addEventListener("pointercancel", ({ target }) => {
  if (!landed.has(target)) return;
  target.value = landed.get(target);
  target.dispatchEvent(new Event("input", { bubbles: true }));
}, true);

words.begin(); // Gradio has put a title of its own
words.fill(element);
element.querySelector(".language").addEventListener("click", () => words.speak(words.other()));
