// Shows the value nearest to the pointer. A plot's data-values has [x, y, text] of each value, x and y
// in thousandths of its width and height.
const tip = document.createElement("output"), dot = document.createElement("i");
tip.className = "tip";
dot.className = "dot";
tip.hidden = dot.hidden = true;
document.body.append(tip, dot);
for (const plot of document.querySelectorAll("[data-values]")) {
  const values = JSON.parse(plot.dataset.values);
  const show = event => {
    const box = plot.getBoundingClientRect();
    const far = ([x, y]) => Math.hypot(
      box.left + x * box.width / 1000 - event.clientX, box.top + y * box.height / 1000 - event.clientY);
    const near = values.reduce((a, b) => far(b) < far(a) ? b : a, [1e9, 1e9, ""]);
    tip.hidden = dot.hidden = far(near) > 60;
    if (tip.hidden) return;
    const left = box.left + near[0] * box.width / 1000, top = box.top + near[1] * box.height / 1000;
    tip.textContent = near[2];
    dot.style.translate = `${left}px ${top}px`;
    const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
    const above = top - tip.offsetHeight - 12;
    tip.style.translate =
      `${Math.max(8, Math.min(left - tip.offsetWidth / 2, room))}px ${above > 8 ? above : top + 14}px`;
  };
  plot.addEventListener("pointermove", show);
  plot.addEventListener("pointerdown", show);
  plot.addEventListener("pointerleave", () => { tip.hidden = dot.hidden = true; });
}
addEventListener("scroll", () => { tip.hidden = dot.hidden = true; }, {passive: true});
