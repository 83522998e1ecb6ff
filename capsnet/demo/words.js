// Says everything on the page, in one language at a time, from the table in words.toml. A message is {say: KEY, with
// what fills its gaps}, a list of messages, or text that needs no words, such as a number or a file's name. An element
// carries its messages, `data-say` for its text and `data-say-aria-label` and the like for its attributes; plain keys in
// HTML, JSON where scripts write them. Another language says them all anew, and nothing else on the page changes.
window.words = (() => {
  const table = TABLE;
  const SPOKEN = ["aria-label", "aria-valuetext", "title", "label"], KEPT = "language";
  const PLACES = ["[data-say]", "[data-say-html]", ...SPOKEN.map((name) => `[data-say-${name}]`)].join();
  let language = preferred();

  function preferred() {
    let kept = null;
    try {
      kept = localStorage.getItem(KEPT);
    } catch {} // a browser may forbid it
    const wanted = [kept, ...navigator.languages].map((tag) => tag?.split("-")[0]);
    return wanted.find((tag) => tag in table["language.tag"]) ?? "en";
  }

  const article = (name) => (/^[8aeiou]/i.test(name) ? `an ${name}` : `a ${name}`);
  const look = (key) => table[key][language];

  function text(message) {
    if (Array.isArray(message)) return message.map(text).join(look("language.comma"));
    if (!message?.say) return String(message ?? "");
    return look(message.say).replace(/\{(a )?(\w+)\}/g, (_, a, name) => (a ? article(text(message[name])) : text(message[name])));
  }

  const parse = (written) => (/^[[{"]/.test(written) ? JSON.parse(written) : { say: written });

  // What an element says already is left alone, so that a screen reader says it once.
  function tell(place) {
    for (const { name, value } of [...place.attributes]) {
      if (!name.startsWith("data-say")) continue;
      const target = name.slice("data-say-".length), said = text(parse(value));
      if (target === "html") place.innerHTML = said;
      else if (target) place.setAttribute(target, said);
      else if (place.textContent !== said) place.textContent = said;
    }
  }

  function fill(within) {
    within.querySelectorAll(PLACES).forEach(tell);
  }

  // Puts a message on an element, as its text or as an attribute; nothing without one.
  function say(place, message, attribute) {
    const name = attribute ? `data-say-${attribute}` : "data-say", written = JSON.stringify(typeof message === "number" ? String(message) : message || "");
    if (place.getAttribute(name) === written) return;
    place.setAttribute(name, written);
    tell(place);
  }

  function speak(next) {
    language = next;
    try {
      localStorage.setItem(KEPT, next);
    } catch {}
    begin();
    fill(document);
  }

  function begin() {
    const page = document.documentElement, tag = look("language.tag");
    if (page.lang !== tag) page.lang = tag;
    document.title = look("page.title");
  }

  begin();
  new MutationObserver(begin).observe(document.documentElement, { attributeFilter: ["lang"] }); // Gradio sets its own
  return {
    table,
    begin,
    fill,
    say,
    speak,
    text,
    other: () => Object.keys(table["language.tag"]).find((one) => one !== language),
  };
})();
