"use strict";
// What pages need beyond htmx. Everything that changes something works as a plain form, too.
(() => {
  // Forms with data-confirm are sent when the visitor has said yes.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!(form instanceof HTMLFormElement) || !form.dataset.confirm || form.dataset.confirmed) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    const dialog = document.getElementById("confirm");
    document.getElementById("confirm-text").textContent = form.dataset.confirm;
    document.getElementById("confirm-yes").textContent = form.dataset.confirmYes || "Do it";
    dialog.returnValue = "no";
    // Not once: the event of a dialog that was just left with Escape may come after this one opens.
    dialog.onclose = () => {
      if (dialog.returnValue !== "yes") return;
      form.dataset.confirmed = "yes";
      form.requestSubmit();
      delete form.dataset.confirmed;
    };
    dialog.showModal();
  }, true);

  // "/" goes to the field that finds things by key.
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest && event.target.closest("input, textarea, select, [contenteditable]");
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const found = document.querySelector(`[data-shortcut="${CSS.escape(event.key)}"]`);
    if (found) { event.preventDefault(); found.focus(); }
  });

  // A browser has few connections to one address: a tab that nobody sees gives its stream back.
  const source = (element) => (element["htmx-internal-data"] || {}).sseEventSource;
  const asleep = new Map();
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      for (const element of document.querySelectorAll("[sse-connect]")) {
        const open = source(element);
        if (open) { open.close(); asleep.set(element, element.cloneNode(true)); }
      }
      return;
    }
    for (const [element, fresh] of asleep) {
      if (!element.isConnected) continue;
      element.replaceWith(fresh);
      window.htmx.process(fresh);
    }
    asleep.clear();
  });
  const stale = (event, is) => {
    const element = event.target.closest && event.target.closest("[data-live]");
    if (element) element.classList.toggle("is-stale", is);
  };
  document.addEventListener("htmx:sseError", (event) => stale(event, true));
  document.addEventListener("htmx:sseOpen", (event) => stale(event, false));

  // Clicks on a drawing choose what a form beside it names: first the source, then the target.
  const mark = (drawing, name, id) => {
    for (const each of drawing.querySelectorAll(`.${name}`)) each.classList.remove(name);
    if (id) for (const each of drawing.querySelectorAll(`[data-element="${CSS.escape(id)}"]`)) each.classList.add(name);
  };
  const has = (select, id) => select && [...select.options].some((option) => option.value === id);
  document.addEventListener("click", (event) => {
    const shape = event.target.closest && event.target.closest("[data-element]");
    const drawing = shape && shape.closest("[data-modify]");
    if (!drawing) return;
    const form = document.querySelector(drawing.dataset.modify);
    const { source, target } = form.elements;
    const id = shape.dataset.element;
    if (!source.value && has(source, id)) source.value = id;
    else if (source.value === id && !target.value) source.value = "";
    else if (has(target, id)) target.value = target.value === id ? "" : id;
    form.dispatchEvent(new Event("change", { bubbles: true }));
  });
  document.addEventListener("change", (event) => {
    const form = event.target.closest && event.target.closest("form");
    const drawing = form && form.id && document.querySelector(`[data-modify="#${CSS.escape(form.id)}"]`);
    if (!drawing) return;
    mark(drawing, "is-source", form.elements.source.value);
    mark(drawing, "is-target", form.elements.target.value);
  });

  // The same for a mapping: what is active on the left becomes something on the right.
  const mapped = () => {
    const form = document.getElementById("mapping");
    const [from, to] = [document.querySelector("[data-map-from]"), document.querySelector("[data-map-to]")];
    if (!form || !from || !to) return;
    mark(from, "is-source", ""); mark(to, "is-target", "");
    for (const select of form.querySelectorAll("select[data-from]")) {
      for (const [drawing, name, id] of [[from, "is-source", select.dataset.from], [to, "is-target", select.value]]) {
        if (id) for (const each of drawing.querySelectorAll(`[data-element="${CSS.escape(id)}"]`)) each.classList.add(name);
      }
    }
  };
  let mapping = null;
  document.addEventListener("click", (event) => {
    const shape = event.target.closest && event.target.closest("[data-element]");
    const form = document.getElementById("mapping");
    if (!shape || !form) return;
    if (shape.closest("[data-map-from]")) {
      mapping = form.querySelector(`select[data-from="${CSS.escape(shape.dataset.element)}"]`);
    } else if (shape.closest("[data-map-to]")) {
      const select = mapping || form.querySelector("select[data-from]");
      if (has(select, shape.dataset.element)) select.value = shape.dataset.element;
    }
    mapped();
  });
  document.addEventListener("change", (event) => { if (event.target.closest("#mapping")) mapped(); });
  document.addEventListener("DOMContentLoaded", mapped);

  // A field with JSON says at once what is wrong with it.
  document.addEventListener("input", (event) => {
    const field = event.target;
    if (!field.dataset || !("json" in field.dataset)) return;
    let problem = "";
    try { JSON.parse(field.value); } catch (error) { problem = String(error.message || error); }
    field.setCustomValidity(problem);
    field.setAttribute("aria-invalid", problem ? "true" : "false");
  });

  // A file that is chosen is read into a field.
  document.addEventListener("change", async (event) => {
    const into = event.target.dataset && document.querySelector(event.target.dataset.readInto || null);
    const file = into && event.target.files[0];
    if (file) into.value = await file.text();
  });

  // Times say how long ago they were, and go on doing so.
  const units = [[172800, 86400, "d"], [7200, 3600, "h"], [120, 60, "min"], [0, 1, "s"]];
  const ago = () => {
    for (const each of document.querySelectorAll("time[data-ago]")) {
      const seconds = (Date.now() - Date.parse(each.dateTime)) / 1000;
      const size = Math.abs(seconds);
      const [, unit, name] = units.find(([least]) => size >= least);
      const text = `${Math.round(size / unit)} ${name}`;
      each.textContent = seconds < -1 ? `in ${text}` : `${text} ago`;
    }
  };
  setInterval(ago, 10000);
})();
