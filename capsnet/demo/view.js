// What is costly to answer is asked only while its place is in view, about the newest thing, once that has rested.
const RESTED = 300; // ms

function whileInView(place, ask) {
  let newest = null, done = null, inView = false, rest = 0;

  function soon() {
    clearTimeout(rest);
    if (inView && newest && newest !== done) rest = setTimeout(() => ask(newest), RESTED);
  }

  new IntersectionObserver((changes) => {
    inView = changes.at(-1).isIntersecting;
    soon();
  }).observe(place);

  return {
    turnTo(thing) {
      newest = thing;
      place.classList.toggle("stale", newest !== done);
      soon();
    },
    finish(thing) {
      done = thing;
      place.classList.remove("stale");
    },
    isNewest: (thing) => thing === newest,
    wants: (thing) => thing === newest && inView,
  };
}
