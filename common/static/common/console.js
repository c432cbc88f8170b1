// The console's own script: the policy of its pages allows none inside them.
"use strict";

// A button with data-copy="#id" copies the text of that element.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const text = document.querySelector(button.dataset.copy).textContent;
  await navigator.clipboard.writeText(text);
  button.textContent = "Copied";
});
