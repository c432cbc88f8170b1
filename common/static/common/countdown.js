// <time data-until="…"> counts down to its moment.
"use strict";

const pad = (number) => String(number).padStart(2, "0");

const tick = () => {
  for (const shown of document.querySelectorAll("[data-until]")) {
    const left = Math.round((Date.parse(shown.dataset.until) - Date.now()) / 1000);
    const clock = `${Math.floor(left / 3600)}:${pad(Math.floor(left / 60) % 60)}:${pad(left % 60)}`;
    shown.textContent = left > 0 ? clock : "over";
  }
};

document.addEventListener("DOMContentLoaded", () => {
  if (!document.querySelector("[data-until]")) return;
  tick();
  setInterval(tick, 1000);
});
