// Brings the sliders into view, which may be screens away.
function showSliders() {
  const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
  document.querySelector("#tweak").scrollIntoView({ behavior: isStill ? "auto" : "smooth" });
}
