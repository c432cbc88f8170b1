// The console's own script: the policy of its pages allows none inside them.
"use strict";

// A button with data-copy="#id" copies the text of that element; with data-copy alone, of the one before it.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const place = button.dataset.copy;
  const copied = place ? document.querySelector(place) : button.previousElementSibling;
  await navigator.clipboard.writeText(copied.textContent);
  button.textContent = "Copied";
});

// The review queue by keys: j and k move, a and r decide, x selects, Enter opens.
document.addEventListener("DOMContentLoaded", () => {
  const queue = document.body.matches(".model-candidate.change-list");
  const single = document.body.matches(".model-candidate.change-form");
  if (!queue && !single) return;
  const rows = [...document.querySelectorAll("#result_list tr.data-row")];
  const place = "obsrv-review-row";
  let at = queue ? Math.min(Number(sessionStorage.getItem(place) ?? -1), rows.length - 1) : -1;

  const move = (to) => {
    rows[at]?.classList.remove("cursor");
    at = Math.max(0, Math.min(to, rows.length - 1));
    rows[at]?.classList.add("cursor");
    rows[at]?.scrollIntoView({ block: "nearest" });
    sessionStorage.setItem(place, String(at));
  };
  const box = (row) => row.querySelector("input.action-select");
  const decide = (action) => {
    if (single) {
      document.querySelector(`[name=monitoring_candidate_${action}_this]`)?.click();
      return;
    }
    const chosen = rows.filter((row) => box(row)?.checked);
    if (!chosen.length && rows[at] && box(rows[at])) box(rows[at]).checked = true;
    else if (!chosen.length) return;
    const form = document.querySelector("#changelist-form");
    form.querySelector("select[name=action]").value = action;
    form.requestSubmit(form.querySelector("button[name=index]"));
  };
  const keys = {
    j: () => move(at + 1),
    k: () => move(at - 1),
    a: () => decide("approve"),
    r: () => decide("reject"),
    x: () => rows[at] && box(rows[at])?.click(),
    Enter: () => rows[at]?.querySelector("th a, td a")?.click(),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    if (event.target.closest("input:not([type=checkbox]), textarea, select, button, a, [contenteditable]")) return;
    const act = keys[event.key];
    if (!act || (single && !"ar".includes(event.key))) return;
    event.preventDefault();
    act();
  });
  if (at >= 0) move(at);
});

// What is marked data-live is asked for again until the server says that it stands still.
document.addEventListener("DOMContentLoaded", () => {
  const PAUSE = 2000;
  const again = async () => {
    if (!document.querySelector("[data-live][id]")) return;
    const answer = document.hidden ? null : await fetch(location.href).catch(() => null);
    if (answer?.ok && !answer.redirected) {
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const old of document.querySelectorAll("[data-live][id]")) {
        const now = fresh.getElementById(old.id);
        if (!now) { old.removeAttribute("data-live"); continue; }
        const row = old.closest("tr.data-row");
        const newRow = now.closest("tr.data-row");
        if (row && newRow) refresh(row, newRow);
        else old.replaceWith(now);
      }
    }
    setTimeout(again, PAUSE);
  };
  // Cell by cell: the box of a row that somebody selected stays as it is.
  const refresh = (row, newRow) => {
    [...row.cells].forEach((cell, number) => {
      const now = newRow.cells[number];
      if (now && !cell.querySelector("input") && cell.innerHTML !== now.innerHTML) cell.innerHTML = now.innerHTML;
    });
  };
  setTimeout(again, PAUSE);
});
