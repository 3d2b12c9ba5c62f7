// Draws every chart of the page at the width it has, and again when the window changes its width.
"use strict";
const specifications = JSON.parse(document.getElementById("charts").textContent);
const SIDES = 76; // room for the vertical axis, in pixels

function draw() {
  for (const [name, specification] of Object.entries(specifications)) {
    const place = document.getElementById("chart-" + name);
    const width = Math.max(place.clientWidth - SIDES, 240);
    for (const part of specification.vconcat) part.width = width;
    vegaEmbed(place, specification, { mode: "vega-lite", actions: false, renderer: "svg" })
      .catch((problem) => { place.textContent = "This chart cannot be drawn: " + problem; });
  }
}

let waiting = null;
let drawnAt = window.innerWidth;
window.addEventListener("resize", () => {
  clearTimeout(waiting);
  if (window.innerWidth === drawnAt) return;
  waiting = setTimeout(() => { drawnAt = window.innerWidth; draw(); }, 200);
});
draw();
